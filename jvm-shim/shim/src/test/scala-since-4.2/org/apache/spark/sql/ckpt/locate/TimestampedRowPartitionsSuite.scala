// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.locate

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.ckpt.families.Operators
import org.apache.spark.sql.execution.streaming.state.TimestampAsPostfixKeyStateEncoderSpec
import org.apache.spark.sql.types._

/** As [[RowPartitionsSuite]], with keys as joins have them in state format 4, since Spark 4.2. */
class TimestampedRowPartitionsSuite extends AnyFunSuite with RowPartitionsTesting {
  private val timed = group.add("timestamp", LongType, nullable = false)

  test("the families of a join with timestamps are where the key of the join is") {
    val name = "left-keyWithTsToValues"
    val store = recorded(1)(List(schema(name, timed, TimestampAsPostfixKeyStateEncoderSpec(timed))))
    val rows = filter(store, Operators.Join, Some(4))
    assert(accepted(rows, name, timed)(id => InternalRow(id, id * 1000)) == expected)
  }
}
