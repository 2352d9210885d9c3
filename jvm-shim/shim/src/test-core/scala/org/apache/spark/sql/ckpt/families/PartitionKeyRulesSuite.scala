// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.families

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types._

/** The main rules with results by hand, for the minors of Spark that have no extractor to compare with. */
class PartitionKeyRulesSuite extends AnyFunSuite {
  private val group = StructType(Seq(StructField("id", LongType), StructField("name", StringType)))
  private val userKey = new StructType().add("n", IntegerType)
  private val inMap = new StructType().add("key", group).add("userKey", userKey)

  /** Asserts the partition key of the sample keys: the key itself from the row that `toKey` makes of it. */
  private def assertKey(operator: String, schema: StructType, family: String = "default", store: String = "default",
      format: Option[Int] = None, isMap: String => Boolean = _ => false)(toKey: InternalRow => InternalRow): Unit = {
    val key = PartitionKey.of(operator, store, family, schema, format, isMap).get
    assert(key.schema.map(_.dataType) == group.map(_.dataType), s"$operator $family")
    val (toGroup, toRow) = (UnsafeProjection.create(group), UnsafeProjection.create(schema))
    (0 until 20).foreach { n =>
      val expected = SampleKeys.row(group, n)
      assert(columns(key(toRow(toKey(expected)))) == columns(toGroup(expected)), s"$operator $family")
    }
  }

  private def columns(row: UnsafeRow): Seq[Any] = row.copy().toSeq(group)

  private def joined(key: InternalRow, last: Any): InternalRow = InternalRow.fromSeq(key.toSeq(group) :+ last)

  test("the whole key of an aggregation, of dropDuplicates and of groups with state") {
    import Operators._
    Seq(Aggregation, RealTimeAggregation, Deduplication, DeduplicationWithinWatermark, FlatMapGroups, ApplyInPandas)
      .foreach(operator => assertKey(operator, group)(key => key))
  }

  test("the key of a session window without the start of the session") {
    assertKey(Operators.SessionWindow, group.add("start", TimestampType))(joined(_, 7L))
  }

  test("the key of a join without the index, by the name of the store or of the family") {
    val indexed = group.add("index", LongType)
    for (side <- Seq("left", "right"); format <- Seq(1, 2)) {
      assertKey(Operators.Join, indexed, store = s"$side-keyWithIndexToValue", format = Some(format))(joined(_, 7L))
      assertKey(Operators.Join, group, store = s"$side-keyToNumValues", format = Some(format))(key => key)
    }
    for (side <- Seq("left", "right")) {
      assertKey(Operators.Join, indexed, s"$side-keyWithIndexToValue", format = Some(3))(joined(_, 7L))
      assertKey(Operators.Join, group, s"$side-keyToNumValues", format = Some(3))(key => key)
      assertKey(Operators.Join, group, s"$side-keyWithTsToValues", format = Some(4))(key => key)
    }
  }

  test("the grouping key in each kind of family of transformWithState") {
    import Operators._
    val expiring = new StructType().add("expirationMs", LongType)
    val entry = InternalRow(5)
    Seq(TransformWithState, TransformWithStateInPandas, TransformWithStateInPySpark).foreach { operator =>
      def assertGroup(family: String, schema: StructType)(toKey: InternalRow => InternalRow): Unit =
        assertKey(operator, schema, family, isMap = Set("map", "$eventTimers_keyToTimestamp"))(toKey)
      assertGroup("value", group)(key => key)
      assertGroup("map", inMap)(InternalRow(_, entry))
      assertGroup("$ttl_value", expiring.add("elementKey", group))(InternalRow(7L, _))
      assertGroup("$ttl_map", expiring.add("elementKey", inMap))(key => InternalRow(7L, InternalRow(key, entry)))
      Seq("$min_list", "$count_list", "$rowCounter_list").foreach(assertGroup(_, group)(key => key))
      Seq("$eventTimers", "$procTimers").foreach { timers =>
        assertGroup(s"${timers}_keyToTimestamp", new StructType().add("key", group).add("at", LongType))(
          InternalRow(_, 7L))
        assertGroup(s"${timers}_timestampToKey", new StructType().add("at", LongType).add("key", group))(
          InternalRow(7L, _))
      }
    }
  }

  test("an operator without a partition key has none") {
    assert(PartitionKey.of(Operators.Limit, "default", "default", group, None, _ => false).isEmpty)
  }
}
