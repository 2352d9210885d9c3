// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.families

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** Keys of state with different values, some of them null where the schema has it. */
private[ckpt] object SampleKeys {
  def of(schema: StructType): Seq[UnsafeRow] = {
    val toRow = UnsafeProjection.create(schema)
    (0 until 20).map(n => toRow(row(schema, n)).copy())
  }

  def row(schema: StructType, n: Int): InternalRow =
    InternalRow.fromSeq(schema.fields.toSeq.zipWithIndex.map { case (field, i) => value(field, n + 100 * i) })

  private def value(field: StructField, n: Int): Any = field.dataType match {
    case struct: StructType => row(struct, n)
    case _ if field.nullable && n % 5 == 3 => null
    case IntegerType => n
    case LongType | TimestampType => n.toLong
    case StringType => UTF8String.fromString(s"value $n")
  }
}
