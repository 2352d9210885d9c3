// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.locate

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.ckpt.families.Operators
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types._

/** Rows of column families, distinguished by Spark's schema files. */
class RowPartitionsSuite extends AnyFunSuite with RowPartitionsTesting {
  private val composite = StructType(Seq(
    StructField("key", group), StructField("userKey", StructType(Seq(StructField("n", LongType))))))

  test("the families of transformWithState are where the key of their group is, also those of an older schema") {
    val store = recorded(0)(
      List(schema("gone", group, NoPrefixKeyStateEncoderSpec(group))),
      List(schema("map", composite, PrefixKeyScanStateEncoderSpec(composite, 1)),
        schema("value", group, NoPrefixKeyStateEncoderSpec(group))))
    val rows = filter(store, Operators.TransformWithState, None)
    assert(accepted(rows, "value", group)(InternalRow(_)) == expected)
    assert(accepted(rows, "gone", group)(InternalRow(_)) == expected)
    assert(accepted(rows, "map", composite)(id => InternalRow(InternalRow(id), InternalRow(id * 7))) == expected)
    assert(intercept[CheckpointFailure](accepted(rows, "other", group)(InternalRow(_))).reason.contains("'other'"))
  }
}
