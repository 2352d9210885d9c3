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

import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.execution.streaming.state.StateStoreId

class StateLocatorSuite extends AnyFunSuite {
  test("a state that is not the one that Spark asks for is refused, with both ids") {
    val found = StateLocation("found", Array(1), "op", None, 0, Nil)
    val id = StateStoreId("file:/somewhere/state", 0, 1)
    assert(StateLocator.checked(id, 7, None, found) eq found)
    assert(StateLocator.checked(id, 7, Some("found"), found) eq found)
    val failure = intercept[CheckpointFailure](StateLocator.checked(id, 7, Some("asked"), found))
    assert(failure.error == "StateIdMismatchError")
    Seq("found", "asked", "version 7").foreach(text => assert(failure.reason.contains(text)))
  }
}
