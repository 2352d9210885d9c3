// SPDX-License-Identifier: Apache-2.0
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
