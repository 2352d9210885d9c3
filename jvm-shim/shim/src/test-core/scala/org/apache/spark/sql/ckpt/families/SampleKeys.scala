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
