// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.locate

import java.io.ByteArrayOutputStream
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Base64
import java.util.zip.DeflaterOutputStream

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.ckpt.families.{KeyGroupOfRow, Operators}
import org.apache.spark.sql.ckpt.protocol.{Message, PartitionFilter}
import org.apache.spark.sql.types._

class PartitionedRowsSuite extends AnyFunSuite {
  private val keySchema = StructType(Seq(StructField("key", LongType), StructField("start", TimestampType)))
  private val toRow = UnsafeProjection.create(keySchema)

  private def key(n: Long, start: Long = 0): UnsafeRow = toRow(InternalRow(n, start)).copy()

  /** Spark's shuffle of a session window, whose start is not hashed. */
  private def partition(parallelism: Int)(row: UnsafeRow): Int =
    UnsafeProjection
      .create(Seq(
        HashPartitioning(Seq(BoundReference(0, LongType, nullable = true)), parallelism).partitionIdExpression))
      .apply(row)
      .getInt(0)

  private def rows(filters: PartitionFilter*): UnsafeRow => Boolean = {
    val function = (family: String, parallelism: Int) => {
      assert(family == "default")
      val of = KeyGroupOfRow
        .partition(
          parallelism, Operators.SessionWindow, "default", family, keySchema, None, _ => false)
        .get
      PartitionOfKey.of(2, of)
    }
    val filtered = new PartitionedRows(filters, function)
    row => filtered.accepts("default", row.getBaseObject, row.getBaseOffset, row.getSizeInBytes)
  }

  test("the rows that pass are those that Spark sends to one of the partitions") {
    val accepts = rows(PartitionFilter(5, Set(1, 3)))
    (0L until 300L).foreach(n => assert(accepts(key(n, n)) == Set(1, 3).contains(partition(5)(key(n))), s"key $n"))
  }

  test("rows must pass every filter") {
    val accepts = rows(PartitionFilter(5, Set(1, 3)), PartitionFilter(7, Set(0, 2, 6)))
    val passed = (0L until 300L).map(key(_)).filter(accepts)
    assert(passed.map(_.getLong(0)) == (0L until 300L).filter(n =>
      Set(1, 3).contains(partition(5)(key(n))) && Set(0, 2, 6).contains(partition(7)(key(n)))))
    assert(passed.nonEmpty)
  }

  test("filters of a subtask, as the master state has them") {
    def store(json: String) = {
      val packed = new ByteArrayOutputStream
      val out = new DeflaterOutputStream(packed)
      out.write(json.getBytes(UTF_8))
      out.close()
      Message.newHeader().put("filters", Base64.getEncoder.encodeToString(packed.toByteArray))
    }
    val described = store("""{"1": [[], [[3, [0, 2]], [7, [4]]]], "11": [[[2, [1]]]]}""")
    assert(SubtaskFilters.of(described, 1) ==
      Seq(Nil, Seq(PartitionFilter(3, Set(0, 2)), PartitionFilter(7, Set(4)))))
    assert(SubtaskFilters.of(described, 11) == Seq(Seq(PartitionFilter(2, Set(1)))))
    assert(SubtaskFilters.of(described, 0) == Nil)
    assert(SubtaskFilters.of(Message.newHeader(), 1) == Nil)
  }
}
