// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.families

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

class KeyGroupsSuite extends AnyFunSuite {
  private val keySchema = StructType(Seq(StructField("name", StringType), StructField("day", LongType)))

  private def key(name: String, day: Long): UnsafeRow =
    UnsafeProjection.create(keySchema)(InternalRow(UTF8String.fromString(name), day)).copy()

  test("the numbers are a permutation, and every partition of every count in the chain owns one range") {
    Seq(Array(4, 2, 2, 2), Array(5, 3), Array(7), Array(1, 2, 2), Array(200, 2, 2, 2)).foreach { factors =>
      val numbering = new KeyGroupNumbering(factors)
      val k = factors.product
      val numbers = (0 until k).map(numbering.number)
      assert(numbers.sorted == (0 until k))
      factors.scanLeft(1)(_ * _).tail.foreach { partitions =>
        (0 until partitions).foreach { partition =>
          val owned = (partition until k by partitions).map(numbering.number).sorted
          assert(owned == (owned.head until owned.head + k / partitions), s"$partition of $partitions")
        }
      }
    }
  }

  test("the stores of a query share a numbering, and few are kept") {
    val numbering = KeyGroupNumbering.of(Array(8, 2, 2, 2))
    assert(KeyGroupNumbering.of(Array(8, 2, 2, 2)) eq numbering)
    assert((0 until 64).map(numbering.number) == (0 until 64).map(new KeyGroupNumbering(Array(8, 2, 2, 2)).number))
    (1 to 40).foreach(partitions => assert(KeyGroupNumbering.of(Array(partitions)).maxParallelism == partitions))
    assert(KeyGroupNumbering.of(Array(8, 2, 2, 2)) ne numbering)
  }

  test("the key group of a row agrees with the partition that Spark's shuffle sends it to") {
    val numbering = new KeyGroupNumbering(Array(8, 2, 2, 2))
    val keyGroups = KeyGroupOfRow.of(
      numbering, Operators.Aggregation, "default", "default", keySchema, None, 0, _ => false)
    val columns = keySchema.fields.toSeq.zipWithIndex.map { case (f, i) => BoundReference(i, f.dataType, f.nullable) }
    val partitionOf = UnsafeProjection.create(Seq(HashPartitioning(columns, 8).partitionIdExpression))
    val seen = (0 until 500).map { i =>
      val row = key(if (i % 7 == 0) null else s"key $i", i)
      val partition = partitionOf(row).getInt(0)
      assert(keyGroups.keyGroup(row) / 8 == partition)
      partition
    }
    assert(seen.distinct.size == 8)
  }

  for (partitions <- Seq(8, 64, 6, 7)) {
    test(s"one hash gives the partition among $partitions and the key group") {
      val numbering = new KeyGroupNumbering(Array(8, 2, 2, 2))
      val places = KeyGroupOfRow.places(
        numbering, partitions, Operators.Aggregation, "default", "default", keySchema, None, 0, _ => false)
      val keyGroups = KeyGroupOfRow.of(
        numbering, Operators.Aggregation, "default", "default", keySchema, None, 0, _ => false)
      val partitionOf = KeyGroupOfRow
        .partition(partitions, Operators.Aggregation, "default", "default", keySchema, None, _ => false)
        .get
      val seen = (0 until 500).map { i =>
        val row = key(if (i % 7 == 0) null else s"key $i", i)
        places.find(row)
        assert((places.partition, places.keyGroup) == ((partitionOf.partition(row), keyGroups.keyGroup(row))))
        places.partition
      }
      assert(seen.distinct.size == partitions)
    }
  }

  test("the place of a row without a partition key is that of its subtask") {
    val places = KeyGroupOfRow.places(
      new KeyGroupNumbering(Array(4, 2)), 4, "globalLimit", "default", "default", keySchema, None, 3, _ => false)
    places.find(key("a", 1))
    assert((places.partition, places.keyGroup / 2) == ((3, 3)))
  }

  test("an operator that Spark has no partition key for keeps its rows in its own partition's range") {
    val numbering = new KeyGroupNumbering(Array(4, 2))
    (0 until 4).foreach { partition =>
      val keyGroups = KeyGroupOfRow.of(
        numbering, "globalLimit", "default", "default", keySchema, None, partition, _ => false)
      assert(keyGroups.keyGroup(key("a", 1)) / 2 == partition)
    }
  }

  test("a row of any family of transformWithState is in the key group of its grouping key") {
    val numbering = new KeyGroupNumbering(Array(4, 2, 2, 2))
    val ofKey =
      KeyGroupOfRow.of(
      numbering, Operators.Aggregation, "default", "default", keySchema, None, 0, _ => false)
    val inMap = new StructType().add("key", keySchema).add("userKey", keySchema)
    val families = Seq[(String, StructType, InternalRow => InternalRow)](
      ("count", keySchema, key => key),
      ("$count_events", keySchema, key => key),
      ("$min_events", keySchema, key => key),
      ("$rowCounter_events", keySchema, key => key),
      ("map", inMap, key => InternalRow(key, InternalRow(null, 5L))),
      ("$ttl_map", new StructType().add("expirationMs", LongType).add("elementKey", inMap),
        key => InternalRow(7L, InternalRow(key, InternalRow(null, 5L)))),
      ("$ttl_count", new StructType().add("expirationMs", LongType).add("elementKey", keySchema),
        key => InternalRow(7L, key)),
      ("$eventTimers_keyToTimestamp", new StructType().add("key", keySchema).add("expiryTimestampMs", LongType),
        key => InternalRow(key, 7L)),
      ("$eventTimers_timestampToKey", new StructType().add("expiryTimestampMs", LongType).add("key", keySchema),
        key => InternalRow(7L, key)))
    families.foreach { case (name, schema, toRow) =>
      val keyGroups = KeyGroupOfRow.of(
        numbering, Operators.TransformWithState, "default", name, schema, None, 0, _ == "map")
      val toKey = UnsafeProjection.create(schema)
      val groups = (0L until 50).map { day =>
        val group = keyGroups.keyGroup(toKey(toRow(key(s"key $day", day))))
        assert(group == ofKey.keyGroup(key(s"key $day", day)), name)
        group
      }
      assert(groups.distinct.size > 10)
    }
  }
}
