// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import scala.collection.mutable

import io.github.sparkckpt.engine.backend.{EntryIterator, TableReader}
import io.github.sparkckpt.engine.bytes.ListCursor

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.ckpt.compat.{ReadMethodsSince41, ReadMethodsSince42, ReadMethodsSince43}
import org.apache.spark.sql.ckpt.families.{ColumnFamily, KeyScans, ValueEncoding}
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType

/**
 * Base of read and write stores: turns the backend's cursors into Spark's rows.
 *
 * @tparam F state of an opened column family
 */
private[ckpt] abstract class StoreReads[F <: TableReader](subtask: SubtaskStore, val version: Long)
    extends ReadStateStore
    with ReadMethodsSince41
    with ReadMethodsSince42
    with ReadMethodsSince43 {
  import StoreReads._

  private val families = mutable.HashMap.empty[String, OpenTable[F]]

  /** A column family of the state, or an error that says why there is none. */
  protected def open(family: ColumnFamily): F

  /** Check before each use: if another attempt intervened, closes the open families, or fails. */
  protected def checkCurrent(): Unit

  protected def family(operation: String, columnFamily: String): OpenTable[F] = {
    checkCurrent()
    families.getOrElseUpdate(columnFamily, {
      val described = subtask.families.get(operation, columnFamily)
      new OpenTable(described, subtask.families.newValueEncoding(described), open(described), subtask.checksFormat)
    })
  }

  /** Forgets the opened families; the next use opens them again. */
  protected def forgetFamilies(): Unit = families.clear()

  protected def listFamily(operation: String, columnFamily: String): OpenTable[F] = {
    val found = family(operation, columnFamily)
    if (!found.family.multiValue) {
      throw new IllegalStateException(
        s"$operation needs a column family with several values per key, '$columnFamily' has one")
    }
    found
  }

  override def id: StateStoreId = subtask.id

  /** Since Spark 4.3, a reader of a join's state describes the families in this way. */
  override def registerColFamily(
      colFamilyName: String,
      keySchema: StructType,
      valueSchema: StructType,
      keyStateEncoderSpec: KeyStateEncoderSpec,
      useMultipleValuesPerKey: Boolean,
      isInternal: Boolean): Unit = {
    subtask.families.checkChange("register_col_family", colFamilyName, isInternal)
    val family = ColumnFamily(
      colFamilyName, keySchema, valueSchema, keyStateEncoderSpec, useMultipleValuesPerKey, isInternal)
    if (subtask.describeFamily(family)) forgetFamilies()
  }

  override def get(key: UnsafeRow, colFamilyName: String): UnsafeRow = {
    val found = family("get", colFamilyName)
    if (find(found, key)) {
      val value = found.value(found.entries.valueBase, found.entries.valueOffset, found.entries.valueLength)
      if (found.isUnchecked) checkFormat(found, key, value)
      value
    } else null
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
    pairs(found, found.scans.prefixScan(found.entries, prefixKey))
  }

  override def rangeScan(
      startKey: Option[UnsafeRow],
      endKey: Option[UnsafeRow],
      colFamilyName: String): StateStoreIterator[UnsafeRowPair] = {
    val found = family("rangeScan", colFamilyName)
    pairs(found, found.scans.rangeScan(found.entries, startKey, endKey))
  }

  protected def scanFrom(prefix: UnsafeRow, columnFamily: String): StateStoreIterator[UnsafeRowPair] = {
    val found = family("reusableIterator", columnFamily)
    pairs(found, found.scans.scanFrom(found.entries, prefix))
  }

  override def iteratorWithMultiValues(colFamilyName: String): StateStoreIterator[UnsafeRowPair] = {
    val found = listFamily("iteratorWithMultiValues", colFamilyName)
    multiPairs(found, found.entries.iterator())
  }

  override def prefixScanWithMultiValues(
      prefixKey: UnsafeRow,
      colFamilyName: String): StateStoreIterator[UnsafeRowPair] = {
    val found = listFamily("prefixScanWithMultiValues", colFamilyName)
    multiPairs(found, found.scans.prefixScan(found.entries, prefixKey))
  }

  override def rangeScanWithMultiValues(
      startKey: Option[UnsafeRow],
      endKey: Option[UnsafeRow],
      colFamilyName: String): StateStoreIterator[UnsafeRowPair] = {
    val found = listFamily("rangeScanWithMultiValues", colFamilyName)
    multiPairs(found, found.scans.rangeScan(found.entries, startKey, endKey))
  }

  override def allColumnFamilyNames: Set[String] = subtask.familyNames

  /** Once per store and family: one operator wrote all its rows. */
  private def checkFormat(table: OpenTable[F], key: UnsafeRow, value: UnsafeRow): Unit = {
    subtask.checkFormat(table.family, key, value)
    table.isUnchecked = false
  }

  private def find(table: OpenTable[F], key: UnsafeRow): Boolean =
    table.entries.get(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes)

  private def pairs(table: OpenTable[F], entries: EntryIterator): StateStoreIterator[UnsafeRowPair] = {
    val pair = new UnsafeRowPair()
    new StateStoreIterator(new Advancing[UnsafeRowPair](() => entries.advance()) {
      override protected def current: UnsafeRowPair = {
        val key = table.family.key(entries.keyBase, entries.keyOffset, entries.keyLength)
        val value = table.value(entries.valueBase, entries.valueOffset, entries.valueLength)
        if (table.isUnchecked) checkFormat(table, key, value)
        pair.withRows(key, value)
      }
    }, () => entries.close())
  }

  private def multiPairs(table: OpenTable[F], entries: EntryIterator): StateStoreIterator[UnsafeRowPair] = {
    val pair = new UnsafeRowPair()
    new StateStoreIterator(new Advancing[Unit](() => entries.advance()) {
      override protected def current: Unit = ()
    }.flatMap { _ =>
      val key = table.family.key(entries.keyBase, entries.keyOffset, entries.keyLength)
      table.values(entries.valueBase, entries.valueOffset, entries.valueLength).map(pair.withRows(key, _))
    }, () => entries.close())
  }
}

private[ckpt] object StoreReads {

  /**
   * A column family that a store has opened.
   *
   * @param isUnchecked true if the first row is still to be compared with the schema
   */
  final class OpenTable[F <: TableReader](
      val family: ColumnFamily,
      val encoding: ValueEncoding,
      val entries: F,
      var isUnchecked: Boolean) {
    lazy val scans: KeyScans = family.newScans()

    /** The row here: of a list the first one, as in Spark's `MultiValuedStateEncoder`. */
    def value(base: AnyRef, offset: Long, length: Int): UnsafeRow =
      if (family.multiValue) values(base, offset, length).nextOption().orNull
      else encoding.decode(base, offset, length)

    /** The rows of the list here. */
    def values(base: AnyRef, offset: Long, length: Int): Iterator[UnsafeRow] = {
      val cursor = new ListCursor().reset(base, offset, length)
      new Advancing[UnsafeRow](() => cursor.advance()) {
        override protected def current: UnsafeRow =
          encoding.decode(cursor.rowBase, cursor.rowOffset, cursor.rowLength)
      }
    }
  }

  /** An iterator over a cursor; `hasNext` moves the cursor. */
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

/** A version of the state, for reading. */
private[ckpt] final class CheckpointReadStore(subtask: SubtaskStore, version: Long)
    extends StoreReads[TableReader](subtask, version) {

  private var epoch = -1L

  /** A write store at this version started a new epoch, but the table is still at the version. */
  override protected def checkCurrent(): Unit =
    if (epoch != subtask.epoch) {
      forgetFamilies()
      epoch = subtask.epoch
    }

  override protected def open(family: ColumnFamily): TableReader = subtask.readerAt(family, version)

  override def abort(): Unit = ()

  override def release(): Unit = ()

  override def toString: String = s"CheckpointReadStore[${subtask.id}, version $version]"
}
