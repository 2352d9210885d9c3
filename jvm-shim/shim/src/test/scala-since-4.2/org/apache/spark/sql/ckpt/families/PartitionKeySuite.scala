// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.families

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.Encoders
import org.apache.spark.sql.catalyst.encoders.ExpressionEncoder
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorsUtils._
import org.apache.spark.sql.execution.streaming.operators.stateful.StatePartitionKeyExtractorFactory
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate._
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.timers.TimerStateUtils
import org.apache.spark.sql.execution.streaming.state.StatePartitionKeyExtractor
import org.apache.spark.sql.streaming.TimeMode
import org.apache.spark.sql.types._

/** Our partition keys equal those of Spark's `StatePartitionKeyExtractorFactory`, which Spark has since 4.2. */
class PartitionKeySuite extends AnyFunSuite {
  private val group = StructType(Seq(StructField("id", LongType), StructField("name", StringType)))

  /** Spark's extractor; None for an operator that Spark cannot repartition. */
  private def extractor(
      operator: String,
      store: String,
      family: String,
      schema: StructType,
      format: Option[Int],
      variable: Option[TransformWithStateVariableInfo]): Option[StatePartitionKeyExtractor] =
    try Some(StatePartitionKeyExtractorFactory.create(operator, schema, store, family, format, variable)) catch {
      case e: SparkThrowable if e.getCondition.contains("UNSUPPORTED_STATEFUL_OPERATOR") => None
    }

  private def assertEqual(
      operator: String,
      schema: StructType,
      family: String = "default",
      store: String = "default",
      format: Option[Int] = None,
      variable: Option[TransformWithStateVariableInfo] = None): Unit = {
    // As the store tells maps: by the encoder of the family, which families of timers by key have too.
    val isMap = variable.filter(_.stateVariableType == StateVariableType.MapState).map(_.stateName).toSet +
      TimerStateUtils.getTimerStateVarNames(TimeMode.EventTime().toString)._1
    val clue = s"$operator, store $store, family $family, format $format"
    val theirs = extractor(operator, store, family, schema, format, variable).getOrElse(fail(clue))
    val ours = PartitionKey.of(operator, store, family, schema, format, isMap).getOrElse(fail(clue))
    assert(ours.schema == theirs.partitionKeySchema, clue)
    SampleKeys.of(schema).foreach(key => assert(ours(key).copy() == theirs.partitionKey(key).copy(), clue))
  }

  test("the names of operators are Spark's") {
    import Operators._
    assert(Seq(Aggregation, Deduplication, DeduplicationWithinWatermark, SessionWindow, Join) ==
      Seq(STATE_STORE_SAVE_EXEC_OP_NAME, DEDUPLICATE_EXEC_OP_NAME, DEDUPLICATE_WITHIN_WATERMARK_EXEC_OP_NAME,
        SESSION_WINDOW_STATE_STORE_SAVE_EXEC_OP_NAME, SYMMETRIC_HASH_JOIN_EXEC_OP_NAME))
    assert(Set(FlatMapGroups, ApplyInPandas) == FLAT_MAP_GROUPS_OP_NAMES.toSet)
    assert(Set(TransformWithState, TransformWithStateInPandas, TransformWithStateInPySpark) ==
      TRANSFORM_WITH_STATE_OP_NAMES.toSet)
  }

  test("operators with one store") {
    import Operators._
    (Seq(Aggregation, Deduplication, DeduplicationWithinWatermark) ++ FLAT_MAP_GROUPS_OP_NAMES)
      .foreach(assertEqual(_, group))
    assertEqual(SessionWindow, group.add("start", TimestampType))
    assertEqual(Aggregation, new StructType())
  }

  test("the stores and the families of a join, in each state format") {
    val indexed = group.add("index", LongType)
    for (side <- Seq("left", "right")) {
      for (format <- Seq(1, 2)) {
        assertEqual(Operators.Join, group, store = s"$side-keyToNumValues", format = Some(format))
        assertEqual(Operators.Join, indexed, store = s"$side-keyWithIndexToValue", format = Some(format))
      }
      assertEqual(Operators.Join, group, s"$side-keyToNumValues", format = Some(3))
      assertEqual(Operators.Join, indexed, s"$side-keyWithIndexToValue", format = Some(3))
      assertEqual(Operators.Join, group, s"$side-keyWithTsToValues", format = Some(4))
      assertEqual(Operators.Join, group, s"$side-tsWithKey", format = Some(4))
    }
  }

  private val keys = ExpressionEncoder(group).asInstanceOf[ExpressionEncoder[Any]]

  /** The families of a variable with their keys, as Spark's operator makes them. */
  private def families(
      kind: StateVariableType.Value, ttl: Boolean): (TransformWithStateVariableInfo, Map[String, StructType]) = {
    import StateStoreColumnFamilySchemaUtils._
    val (name, schemas) = kind match {
      case StateVariableType.ValueState => "value" -> getValueStateSchema("value", keys, Encoders.scalaLong, ttl).values
      case StateVariableType.ListState => "list" -> getListStateSchema("list", keys, Encoders.scalaLong, ttl).values
      case StateVariableType.MapState =>
        "map" -> getMapStateSchema("map", keys, Encoders.STRING, Encoders.scalaLong, ttl).values
    }
    val counter = Option.when(kind == StateVariableType.ListState)(s"$$rowCounter_$name" -> group)
    TransformWithStateVariableInfo(name, kind, ttl) ->
      (schemas.map(family => family.colFamilyName -> family.keySchema).toMap ++ counter)
  }

  test("the families of the state variables of transformWithState, with and without a time to live") {
    val seen = for {
      operator <- TRANSFORM_WITH_STATE_OP_NAMES
      kind <- Seq(StateVariableType.ValueState, StateVariableType.ListState, StateVariableType.MapState)
      ttl <- Seq(false, true)
      (variable, schemas) = families(kind, ttl)
      (family, schema) <- schemas
    } yield {
      assertEqual(operator, schema, family, variable = Some(variable))
      family
    }
    assert(seen.toSet == Set(
      "value", "list", "map", "$ttl_value", "$ttl_list", "$ttl_map", "$min_list", "$count_list", "$rowCounter_list"))
  }

  test("the timers of transformWithState, by key and by time") {
    val encoder = new TimerKeyEncoder(keys)
    for (operator <- TRANSFORM_WITH_STATE_OP_NAMES; mode <- Seq(TimeMode.EventTime(), TimeMode.ProcessingTime())) {
      val (byKey, byTime) = TimerStateUtils.getTimerStateVarNames(mode.toString)
      val timers = Some(TransformWithStateVariableInfo(byKey, StateVariableType.TimerState, ttlEnabled = false))
      assertEqual(operator, encoder.schemaForKeyRow, byKey, variable = timers)
      assertEqual(operator, encoder.keySchemaForSecIndex, byTime, variable = timers)
    }
  }

  test("operators that Spark cannot repartition have no partition key") {
    Seq(Operators.Limit, "streamingLimit", "any").foreach { operator =>
      assert(extractor(operator, "default", "default", group, None, None).isEmpty, operator)
      assert(PartitionKey.of(operator, "default", "default", group, None, _ => false).isEmpty, operator)
    }
  }

  /** Spark 4.3 names it in `StatefulOperatorsUtils` but has no extractor; its state is that of the aggregation. */
  test("the aggregation of real-time mode has the key of the aggregation, where Spark has none") {
    assert(extractor(Operators.RealTimeAggregation, "default", "default", group, None, None).isEmpty)
    val ours = PartitionKey.of(Operators.RealTimeAggregation, "default", "default", group, None, _ => false).get
    val theirs = extractor(Operators.Aggregation, "default", "default", group, None, None).get
    assert(ours.schema == theirs.partitionKeySchema)
    SampleKeys.of(group).foreach(key => assert(ours(key) == theirs.partitionKey(key)))
  }
}
