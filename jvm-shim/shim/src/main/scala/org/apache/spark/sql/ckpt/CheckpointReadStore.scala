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

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.ckpt.backend.{EntryIterator, FamilyReader, ListCursor}
import org.apache.spark.sql.ckpt.executor.{FamilySchema, ValueEncoding}
import org.apache.spark.sql.execution.streaming.state._

/**
 * What reading and writing stores share: turning the backend's cursors into Spark's rows.
 *
 * @tparam F how a column family is used
 */
private[ckpt] abstract class StoreReads[F <: FamilyReader](provider: CheckpointStateStoreProvider, val version: Long)
    extends ReadStateStore {
  import StoreReads._

  private val families = mutable.HashMap.empty[String, Family[F]]

  /** A column family of the state, or an error that says why there is none (any more). */
  protected def open(schema: FamilySchema): F

  /** Before each use: forgets what was opened, or fails, if another attempt has come in between. */
  protected def checkCurrent(): Unit

  protected def family(operation: String, columnFamily: String): Family[F] = {
    checkCurrent()
    families.getOrElseUpdate(columnFamily, {
      val schema = provider.families.get(operation, columnFamily)
      new Family(schema, open(schema))
    })
  }

  /** All families are opened anew when they are used next. */
  protected def forgetFamilies(): Unit = families.clear()

  protected def listFamily(operation: String, columnFamily: String): Family[F] = {
    val found = family(operation, columnFamily)
    if (!found.schema.multiValue) {
      throw new IllegalStateException(
        s"$operation needs a column family with several values per key, '$columnFamily' has one")
    }
    found
  }

  override def id: StateStoreId = provider.stateStoreId

  override def get(key: UnsafeRow, colFamilyName: String): UnsafeRow = {
    val found = family("get", colFamilyName)
    if (find(found, key)) found.value(found.entries.valueBase, found.entries.valueOffset, found.entries.valueLength)
    else null
  }

  override def multiGet(keys: Array[UnsafeRow], colFamilyName: String): Iterator[UnsafeRow] =
    keys.iterator.map(get(_, colFamilyName))

  override def keyExists(key: UnsafeRow, colFamilyName: String): Boolean =
    family("keyExists", colFamilyName).entries.contains(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes)

  override def valuesIterator(key: UnsafeRow, colFamilyName: String): Iterator[UnsafeRow] = {
    val found = listFamily("valuesIterator", colFamilyName)
    if (find(found, key)) found.values(found.entries.valueBase, found.entries.valueOffset, found.entries.valueLength)
    else Iterator.empty
  }

  override def iterator(colFamilyName: String): StateStoreIterator[UnsafeRowPair] = {
    val found = family("iterator", colFamilyName)
    pairs(found, found.entries.iterator())
  }

  override def prefixScan(prefixKey: UnsafeRow, colFamilyName: String): StateStoreIterator[UnsafeRowPair] = {
    val found = family("prefixScan", colFamilyName)
    pairs(found, found.schema.prefixScan(found.entries, prefixKey))
  }

  override def rangeScan(
      startKey: Option[UnsafeRow],
      endKey: Option[UnsafeRow],
      colFamilyName: String): StateStoreIterator[UnsafeRowPair] = {
    val found = family("rangeScan", colFamilyName)
    pairs(found, found.schema.rangeScan(found.entries, startKey, endKey))
  }

  override def iteratorWithMultiValues(colFamilyName: String): StateStoreIterator[UnsafeRowPair] = {
    val found = listFamily("iteratorWithMultiValues", colFamilyName)
    multiPairs(found, found.entries.iterator())
  }

  override def prefixScanWithMultiValues(
      prefixKey: UnsafeRow,
      colFamilyName: String): StateStoreIterator[UnsafeRowPair] = {
    val found = listFamily("prefixScanWithMultiValues", colFamilyName)
    multiPairs(found, found.schema.prefixScan(found.entries, prefixKey))
  }

  override def rangeScanWithMultiValues(
      startKey: Option[UnsafeRow],
      endKey: Option[UnsafeRow],
      colFamilyName: String): StateStoreIterator[UnsafeRowPair] = {
    val found = listFamily("rangeScanWithMultiValues", colFamilyName)
    multiPairs(found, found.schema.rangeScan(found.entries, startKey, endKey))
  }

  override def allColumnFamilyNames: Set[String] = provider.familyNames

  private def find(family: Family[F], key: UnsafeRow): Boolean =
    family.entries.get(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes)

  private def pairs(family: Family[F], entries: EntryIterator): StateStoreIterator[UnsafeRowPair] = {
    val pair = new UnsafeRowPair()
    new StateStoreIterator(new Advancing[UnsafeRowPair](() => entries.advance()) {
      override protected def current: UnsafeRowPair = pair.withRows(
        family.schema.key(entries.keyBase, entries.keyOffset, entries.keyLength),
        family.value(entries.valueBase, entries.valueOffset, entries.valueLength))
    }, () => entries.close())
  }

  private def multiPairs(family: Family[F], entries: EntryIterator): StateStoreIterator[UnsafeRowPair] = {
    val pair = new UnsafeRowPair()
    new StateStoreIterator(new Advancing[Unit](() => entries.advance()) {
      override protected def current: Unit = ()
    }.flatMap { _ =>
      val key = family.schema.key(entries.keyBase, entries.keyOffset, entries.keyLength)
      family.values(entries.valueBase, entries.valueOffset, entries.valueLength).map(pair.withRows(key, _))
    }, () => entries.close())
  }
}

private[ckpt] object StoreReads {

  /** A column family that a store has opened. */
  final class Family[F <: FamilyReader](val schema: FamilySchema, val entries: F) {
    val encoding: ValueEncoding = schema.newValueEncoding()

    /** The row at this place: of a list the first one, as Spark's `MultiValuedStateEncoder` has it. */
    def value(base: AnyRef, offset: Long, length: Int): UnsafeRow =
      if (schema.multiValue) values(base, offset, length).nextOption().orNull
      else encoding.decode(base, offset, length)

    /** The rows of the list at this place. */
    def values(base: AnyRef, offset: Long, length: Int): Iterator[UnsafeRow] = {
      val cursor = new ListCursor().reset(base, offset, length)
      new Advancing[UnsafeRow](() => cursor.advance()) {
        override protected def current: UnsafeRow =
          encoding.decode(cursor.rowBase, cursor.rowOffset, cursor.rowLength)
      }
    }
  }

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
    extends StoreReads[FamilyReader](provider, version) {

  private var epoch = -1L

  /** A store that was opened for writing at this same version made a new epoch, but the table is still at it. */
  override protected def checkCurrent(): Unit =
    if (epoch != provider.epoch) {
      forgetFamilies()
      epoch = provider.epoch
    }

  override protected def open(schema: FamilySchema): FamilyReader = provider.readerAt(schema, version)

  override def abort(): Unit = ()

  override def release(): Unit = ()

  override def toString: String = s"CheckpointReadStore[${provider.stateStoreId}, version $version]"
}
