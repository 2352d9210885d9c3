// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.families

import io.github.sparkckpt.engine.backend.{EntryIterator, KeyedTable, TableReader}
import io.github.sparkckpt.engine.bytes.Slice
import io.github.sparkckpt.engine.table.{KeyAccess, KeyGroupFunction}

import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.{BooleanType, ByteType, StructType}
import org.apache.spark.unsafe.Platform

/**
 * A column family as Spark describes it, and its form for the backend.
 *
 * @param keySchema schema of the operator's keys; stored keys have the encoder's schema, which may add a timestamp
 * @param isInternal true for an index of the operator, whose rows do not count as rows of state
 */
private[ckpt] final case class ColumnFamily(
    name: String,
    keySchema: StructType,
    valueSchema: StructType,
    encoder: KeyStateEncoderSpec,
    multiValue: Boolean,
    isInternal: Boolean) {
  import ColumnFamily._

  private val keyFields = encoder.keySchema.length

  /** A new one each time: it has scratch space, and an abandoned task of another batch may still use its own. */
  def newAccess(): KeyAccess = encoder match {
    case NoPrefixKeyStateEncoderSpec(_) => KeyAccess.Point
    case PrefixKeyScanStateEncoderSpec(schema, columns) => new LeftmostColumns(schema, columns)
    case range: RangeKeyScanStateEncoderSpec => new EncodedKeys(withOrderedBooleans(range), valueSchema)
    case other => new EncodedKeys(other, valueSchema)
  }

  /** One per store, because it has scratch space. */
  def newScans(): KeyScans = newAccess() match {
    case keys: EncodedKeys => new KeyScans(Some(keys.encoder))
    case _ => new KeyScans(None)
  }

  /** @param keyGroupOf evaluated at the first new key, because it compiles code */
  def keyGroups(keyGroupOf: => KeyGroupOfRow): KeyGroupFunction = new KeyGroups(() => keyGroupOf, keyFields)

  /** New rows each time: operators may hold a row while they request the next. */
  def key(base: AnyRef, offset: Long, length: Int): UnsafeRow = {
    val row = new UnsafeRow(keyFields)
    row.pointTo(base, offset, length)
    row
  }
}

/**
 * Scans of one column family for one store. Not thread-safe.
 *
 * @param encoder encoder of ordered keys
 */
private[ckpt] final class KeyScans(encoder: Option[RocksDBKeyStateEncoder]) {

  /** @throws UnsupportedOperationException if the keys have no prefix to scan by */
  def prefixScan(entries: TableReader, prefix: UnsafeRow): EntryIterator = encoder match {
    case Some(keys) =>
      val start = keys.encodePrefixKey(prefix)
      entries.prefixScan(start, Platform.BYTE_ARRAY_OFFSET, start.length)
    case None => entries.prefixScan(prefix.getBaseObject, prefix.getBaseOffset, prefix.getSizeInBytes)
  }

  /** @throws UnsupportedOperationException if the keys have no order */
  def rangeScan(entries: TableReader, start: Option[UnsafeRow], end: Option[UnsafeRow]): EntryIterator =
    entries.rangeScan(encoded(start), encoded(end))

  /**
   * The range from the keys with a prefix on.
   *
   * @throws UnsupportedOperationException if the keys have no order
   */
  def scanFrom(entries: TableReader, prefix: UnsafeRow): EntryIterator =
    entries.rangeScan(encoder.map(_.encodePrefixKey(prefix)).orNull, null)

  /** @throws UnsupportedOperationException if the keys have no order */
  def removeRange(table: KeyedTable, start: UnsafeRow, end: UnsafeRow): Unit =
    table.removeRange(encoded(Some(start)), encoded(Some(end)))

  private def encoded(bound: Option[UnsafeRow]): Array[Byte] =
    (for (keys <- encoder; row <- bound) yield keys.encodeKey(row)).orNull
}

private[ckpt] object ColumnFamily {
  /** Spark's encoder (`UnsafeRowDataEncoder`) writes nothing for a boolean; its byte has the right order. */
  private def withOrderedBooleans(spec: RangeKeyScanStateEncoderSpec): RangeKeyScanStateEncoderSpec =
    spec.copy(keySchema = StructType(spec.keySchema.fields.zipWithIndex.map {
      case (field, i) if field.dataType == BooleanType && spec.orderingOrdinals.contains(i) =>
        field.copy(dataType = ByteType)
      case (field, _) => field
    }))

  private final class KeyGroups(make: () => KeyGroupOfRow, keyFields: Int) extends KeyGroupFunction {
    private lazy val function = make()
    private val row = new UnsafeRow(keyFields)

    override def another: KeyGroupFunction = new KeyGroups(make, keyFields)

    override def keyGroup(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Int = {
      row.pointTo(keyBase, keyOffset, keyLength)
      function.keyGroup(row)
    }
  }

  private final class LeftmostColumns(keySchema: StructType, columns: Int) extends KeyAccess.Prefix {
    override val id: String = s"prefix $columns of ${keySchema.catalogString}"
    override def another: KeyAccess = new LeftmostColumns(keySchema, columns)
    private val key = new UnsafeRow(keySchema.length)
    private val projection = UnsafeProjection.create(keySchema.fields.toSeq.take(columns).zipWithIndex.map {
      case (field, i) => BoundReference(i, field.dataType, field.nullable)
    })

    private val prefix = new Slice

    override def prefixOf(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Slice = {
      key.pointTo(keyBase, keyOffset, keyLength)
      val row = projection(key)
      prefix.point(row.getBaseObject, row.getBaseOffset, row.getSizeInBytes)
    }
  }

  /** Keys in the order of their bytes in Spark's RocksDB provider: its encoders define what a scan gives. */
  private final class EncodedKeys(spec: KeyStateEncoderSpec, valueSchema: StructType) extends KeyAccess.Ordered {
    override val id: String = s"${spec.json} of ${spec.keySchema.catalogString}"
    override def another: KeyAccess = new EncodedKeys(spec, valueSchema)
    val encoder: RocksDBKeyStateEncoder =
      spec.toEncoder(new UnsafeRowDataEncoder(spec, valueSchema), useColumnFamilies = true)
    private val key = new UnsafeRow(spec.keySchema.length)

    override def encode(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Array[Byte] = {
      key.pointTo(keyBase, keyOffset, keyLength)
      encoder.encodeKey(key)
    }
  }
}
