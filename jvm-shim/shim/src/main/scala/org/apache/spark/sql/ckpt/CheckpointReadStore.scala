/*
 * Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
 * the License. You may obtain a copy of the License at
 *
 *    http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on
 * an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
 * specific language governing permissions and limitations under the License.
 */
package org.apache.spark.sql.ckpt

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.ckpt.backend.{EntryIterator, FamilyReader, ListCursor}
import org.apache.spark.sql.ckpt.executor.FamilySchema
import org.apache.spark.sql.execution.streaming.state._

/** What reading and writing stores share: turning the backend's cursors into Spark's rows. */
private[ckpt] abstract class StoreReads(provider: CheckpointStateStoreProvider, val version: Long)
    extends ReadStateStore {

  /** The reader of a column family, or an error that says why there is none (any more). */
  protected def reader(columnFamily: String): FamilyReader

  protected def schema(columnFamily: String): FamilySchema = provider.familySchema(columnFamily)

  override def id: StateStoreId = provider.stateStoreId

  override def get(key: UnsafeRow, colFamilyName: String): UnsafeRow = {
    val family = reader(colFamilyName)
    if (family.get(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes)) {
      schema(colFamilyName).value(family.valueBase, family.valueOffset, family.valueLength)
    } else {
      null
    }
  }

  override def multiGet(keys: Array[UnsafeRow], colFamilyName: String): Iterator[UnsafeRow] =
    keys.iterator.map(get(_, colFamilyName))

  override def keyExists(key: UnsafeRow, colFamilyName: String): Boolean =
    reader(colFamilyName).contains(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes)

  override def valuesIterator(key: UnsafeRow, colFamilyName: String): Iterator[UnsafeRow] = {
    val rows = schema(colFamilyName)
    requireMultiValue(rows, "valuesIterator")
    val family = reader(colFamilyName)
    if (family.get(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes)) {
      values(rows, family.valueBase, family.valueOffset, family.valueLength)
    } else {
      Iterator.empty
    }
  }

  override def iterator(colFamilyName: String): StateStoreIterator[UnsafeRowPair] =
    pairs(schema(colFamilyName), reader(colFamilyName).iterator())

  override def prefixScan(prefixKey: UnsafeRow, colFamilyName: String): StateStoreIterator[UnsafeRowPair] =
    pairs(schema(colFamilyName), scan(prefixKey, colFamilyName))

  override def iteratorWithMultiValues(colFamilyName: String): StateStoreIterator[UnsafeRowPair] =
    multiPairs(colFamilyName, "iteratorWithMultiValues", reader(colFamilyName).iterator())

  override def prefixScanWithMultiValues(
      prefixKey: UnsafeRow,
      colFamilyName: String): StateStoreIterator[UnsafeRowPair] =
    multiPairs(colFamilyName, "prefixScanWithMultiValues", scan(prefixKey, colFamilyName))

  override def allColumnFamilyNames: Set[String] = provider.familyNames

  private def scan(prefix: UnsafeRow, columnFamily: String): EntryIterator =
    reader(columnFamily).prefixScan(prefix.getBaseObject, prefix.getBaseOffset, prefix.getSizeInBytes)

  private def pairs(rows: FamilySchema, entries: EntryIterator): StateStoreIterator[UnsafeRowPair] = {
    val pair = new UnsafeRowPair()
    new StateStoreIterator(new StoreReads.Advancing[UnsafeRowPair](() => entries.advance()) {
      override protected def current: UnsafeRowPair = pair.withRows(
        rows.key(entries.keyBase, entries.keyOffset, entries.keyLength),
        rows.value(entries.valueBase, entries.valueOffset, entries.valueLength))
    })
  }

  private def multiPairs(
      columnFamily: String,
      operation: String,
      entries: EntryIterator): StateStoreIterator[UnsafeRowPair] = {
    val rows = schema(columnFamily)
    requireMultiValue(rows, operation)
    val pair = new UnsafeRowPair()
    new StateStoreIterator(new StoreReads.Advancing[Unit](() => entries.advance()) {
      override protected def current: Unit = ()
    }.flatMap { _ =>
      val key = rows.key(entries.keyBase, entries.keyOffset, entries.keyLength)
      values(rows, entries.valueBase, entries.valueOffset, entries.valueLength).map(pair.withRows(key, _))
    })
  }

  private def values(rows: FamilySchema, base: AnyRef, offset: Long, length: Int): Iterator[UnsafeRow] = {
    val cursor = new ListCursor().reset(base, offset, length)
    new StoreReads.Advancing[UnsafeRow](() => cursor.advance()) {
      override protected def current: UnsafeRow = rows.value(cursor.rowBase, cursor.rowOffset, cursor.rowLength)
    }
  }

  protected def requireMultiValue(rows: FamilySchema, operation: String): Unit =
    require(rows.multiValue, s"$operation needs a column family with several values per key, '${rows.name}' has one")
}

private[ckpt] object StoreReads {

  /** An iterator over a cursor that is moved when the caller asks whether there is more. */
  private abstract class Advancing[A](advance: () => Boolean) extends Iterator[A] {
    private var asked = false
    private var more = false

    protected def current: A

    override def hasNext: Boolean = {
      if (!asked) {
        more = advance()
        asked = true
      }
      more
    }

    override def next(): A = {
      if (!hasNext) throw new NoSuchElementException("the end of the state store's iterator")
      asked = false
      current
    }
  }
}

/** The state of one version, for reading. */
private[ckpt] final class CheckpointReadStore(provider: CheckpointStateStoreProvider, version: Long)
    extends StoreReads(provider, version) {

  private var epoch = -1L
  private var family: FamilyReader = _
  private var familyName: String = _

  override protected def reader(columnFamily: String): FamilyReader = {
    // A store that was opened for writing at this same version made a new epoch, but the table is still at it.
    if (epoch != provider.epoch || familyName != columnFamily) {
      family = provider.readerAt(columnFamily, version)
      familyName = columnFamily
      epoch = provider.epoch
    }
    family
  }

  override def abort(): Unit = ()

  override def release(): Unit = ()

  override def toString: String = s"CheckpointReadStore[${provider.stateStoreId}, version $version]"
}
