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
package org.apache.spark.sql.ckpt.executor

import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.ckpt.backend.{FamilySpec, KeyAccess, KeyGroupFunction}
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType

/** The shape of one column family, from Spark's types to what the backend needs. Not thread-safe. */
private[ckpt] final class FamilySchema(
    val name: String,
    val keySchema: StructType,
    val valueSchema: StructType,
    encoder: KeyStateEncoderSpec,
    val multiValue: Boolean) {

  val keyFields: Int = keySchema.length
  val valueFields: Int = valueSchema.length

  val access: KeyAccess = encoder match {
    case NoPrefixKeyStateEncoderSpec(_) => KeyAccess.Point
    case PrefixKeyScanStateEncoderSpec(schema, columns) => new FamilySchema.LeftmostColumns(schema, columns)
    case other =>
      throw StateStoreErrors.unsupportedOperationException(other.getClass.getSimpleName, "CheckpointStateStoreProvider")
  }

  /** @param keyGroupOf made when the first new key is written, because it compiles code */
  def spec(keyGroupOf: => KeyGroupOfRow): FamilySpec = {
    val keyGroups = new KeyGroupFunction {
      private lazy val function = keyGroupOf
      private val row = new UnsafeRow(keyFields)

      override def keyGroup(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Int = {
        row.pointTo(keyBase, keyOffset, keyLength)
        function.keyGroup(row)
      }
    }
    FamilySpec(name, keyGroups, access, multiValue)
  }

  /** @param partition of a row with this family's key */
  def partitionOf(partition: UnsafeRow => Int): PartitionOfKey = {
    val row = new UnsafeRow(keyFields)
    (keyBase: AnyRef, keyOffset: Long, keyLength: Int) => {
      row.pointTo(keyBase, keyOffset, keyLength)
      partition(row)
    }
  }

  /** New rows each time, because operators may hold a row while they ask for the next. */
  def key(base: AnyRef, offset: Long, length: Int): UnsafeRow = FamilySchema.row(keyFields, base, offset, length)

  def value(base: AnyRef, offset: Long, length: Int): UnsafeRow = FamilySchema.row(valueFields, base, offset, length)
}

private[ckpt] object FamilySchema {
  private def row(fields: Int, base: AnyRef, offset: Long, length: Int): UnsafeRow = {
    val row = new UnsafeRow(fields)
    row.pointTo(base, offset, length)
    row
  }

  private final class LeftmostColumns(keySchema: StructType, columns: Int) extends KeyAccess.Prefix {
    override val id: String = s"prefix $columns of ${keySchema.catalogString}"
    private val key = new UnsafeRow(keySchema.length)
    private val projection = UnsafeProjection.create(keySchema.fields.toSeq.take(columns).zipWithIndex.map {
      case (field, i) => BoundReference(i, field.dataType, field.nullable)
    })

    override def prefixOf(keyBase: AnyRef, keyOffset: Long, keyLength: Int): UnsafeRow = {
      key.pointTo(keyBase, keyOffset, keyLength)
      projection(key)
    }
  }
}
