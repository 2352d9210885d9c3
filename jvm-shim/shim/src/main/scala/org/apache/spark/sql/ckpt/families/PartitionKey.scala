// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.families

import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.StructType

/**
 * The columns of a state key that Spark's shuffle partitions by. Not thread-safe.
 *
 * @param schema their schema; empty for a global operator
 */
private[ckpt] final class PartitionKey private (val schema: StructType, columnsOf: UnsafeRow => UnsafeRow) {
  def apply(key: UnsafeRow): UnsafeRow = columnsOf(key)
}

/**
 * Partition keys by operator and column family. The rules are those of `StatePartitionKeyExtractorFactory`, which Spark
 * has since 4.2.
 */
private[ckpt] object PartitionKey {
  private val WholeKey = Set(
    "stateStoreSave",
    "StatefulStreamlineAggregate", // the aggregation of real-time mode
    "dedupe",
    "dedupeWithinWatermark",
    "flatMapGroupsWithState",
    "applyInPandasWithState")

  /** Spark's short name of stream-stream joins. */
  val Join = "symmetricHashJoin"

  private val TransformWithState =
    Set("transformWithStateExec", "transformWithStateInPandasExec", "transformWithStateInPySparkExec")

  /** `StateStoreColumnFamilySchemaUtils`: marks of families that belong to a state variable. */
  private val TtlIndex = "$ttl_"
  private val VariableMarks = Seq(TtlIndex, "$min_", "$count_", "$rowCounter_")

  /** `TimerStateUtils`: families of timers, by key and by time. */
  private val TimerMarks = Seq("$procTimers", "$eventTimers")
  private val TimersByTime = "_timestampToKey"

  /** @param operator Spark's short name of the operator */
  def isTransformWithState(operator: String): Boolean = TransformWithState(operator)

  /**
   * None for operators that Spark cannot repartition either, such as a limit.
   *
   * @param operator           Spark's short name of the operator
   * @param keySchema          schema of the key as the operator sees it
   * @param stateFormatVersion state format version of a join, else None
   * @param isMap              true if the family of this name is the map of a `transformWithState`
   */
  def of(
      operator: String,
      store: String,
      columnFamily: String,
      keySchema: StructType,
      stateFormatVersion: Option[Int],
      isMap: String => Boolean): Option[PartitionKey] = operator match {
    case name if WholeKey(name) => Some(whole(keySchema))
    case "sessionWindowStateStoreSaveExec" => Some(withoutLast(keySchema))
    case Join =>
      val table = if (stateFormatVersion.exists(_ >= 3)) columnFamily else store
      Some(if (table.endsWith("-keyWithIndexToValue")) withoutLast(keySchema) else whole(keySchema))
    case name if isTransformWithState(name) => Some(ofVariable(columnFamily, keySchema, isMap))
    case _ => None
  }

  /** The grouping key in a family of `transformWithState`; a list has the keys of a value. */
  private def ofVariable(family: String, keySchema: StructType, isMap: String => Boolean): PartitionKey =
    if (TimerMarks.exists(family.startsWith)) column(whole(keySchema), if (family.endsWith(TimersByTime)) 1 else 0)
    else {
      val mark = VariableMarks.find(family.startsWith)
      val belongsToMap = isMap(mark.fold(family)(family.stripPrefix(_)))
      mark match {
        case Some(TtlIndex) if belongsToMap => column(column(whole(keySchema), 1), 0)
        case Some(TtlIndex) => column(whole(keySchema), 1)
        case None if belongsToMap => column(whole(keySchema), 0)
        case _ => whole(keySchema)
      }
    }

  private def whole(keySchema: StructType): PartitionKey = new PartitionKey(keySchema, identity)

  private def column(key: PartitionKey, index: Int): PartitionKey = {
    val schema = key.schema(index).dataType.asInstanceOf[StructType]
    new PartitionKey(schema, row => key(row).getStruct(index, schema.length))
  }

  private def withoutLast(keySchema: StructType): PartitionKey = {
    val schema = StructType(keySchema.init)
    val projection = UnsafeProjection.create(schema.fields.toSeq.zipWithIndex.map { case (field, i) =>
      BoundReference(i, field.dataType, field.nullable)
    })
    new PartitionKey(schema, projection(_))
  }
}
