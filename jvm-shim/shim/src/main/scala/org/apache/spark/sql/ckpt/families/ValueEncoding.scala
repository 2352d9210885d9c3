// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.families

import io.github.sparkckpt.engine.bytes.Bytes

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.unsafe.Platform

/** Encoding of a column family's rows as values, and back. Not thread-safe. */
private[ckpt] abstract class ValueEncoding {

  /** Place of the bytes of [[encode]], as in `Platform`. */
  var base: AnyRef = _
  var offset: Long = 0L
  var length: Int = 0

  /** Sets `base`, `offset` and `length`, which are valid until the row changes or the next call. */
  def encode(row: UnsafeRow): Unit

  /** A new row each time: operators may hold a row while they request the next. */
  def decode(base: AnyRef, offset: Long, length: Int): UnsafeRow
}

private[ckpt] object ValueEncoding {

  /**
   * The encoding of a family.
   *
   * @param format  value of `spark.sql.streaming.stateStore.encodingFormat`
   * @param schemas schemas of an operator whose schemas may change; None for others, whose rows are stored unchanged
   */
  def of(format: String, schemas: Option[StateSchemaProvider])(family: ColumnFamily): ValueEncoding =
    schemas match {
      case Some(known) if format == StateStoreEncoding.Avro.toString => new AvroValues(family, known)
      case _ => new RowValues(family.valueSchema.length)
    }

  private final class RowValues(fields: Int) extends ValueEncoding {
    override def encode(row: UnsafeRow): Unit = {
      base = row.getBaseObject
      offset = row.getBaseOffset
      length = row.getSizeInBytes
    }

    override def decode(base: AnyRef, offset: Long, length: Int): UnsafeRow = {
      val row = new UnsafeRow(fields)
      row.pointTo(base, offset, length)
      row
    }
  }

  /**
   * Avro with the id of the writer's schema, by Spark's own encoder. Keys need none: their schema must not change
   * (`StateSchemaCompatibilityChecker`).
   */
  private final class AvroValues(family: ColumnFamily, schemas: StateSchemaProvider) extends ValueEncoding {
    // Lazy: some readers describe the default family with a placeholder schema.
    private lazy val encoder =
      new AvroStateEncoder(family.encoder, family.valueSchema, Some(schemas), family.name)

    override def encode(row: UnsafeRow): Unit = {
      val bytes = encoder.encodeValue(row)
      base = bytes
      offset = Platform.BYTE_ARRAY_OFFSET
      length = bytes.length
    }

    override def decode(base: AnyRef, offset: Long, length: Int): UnsafeRow =
      encoder.decodeValue(Bytes.toArray(base, offset, length)).copy()
  }
}
