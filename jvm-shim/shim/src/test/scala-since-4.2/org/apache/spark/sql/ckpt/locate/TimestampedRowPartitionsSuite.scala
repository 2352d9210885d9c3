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
