// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import org.scalatest.funsuite.AnyFunSuite

class WantedRescalesSuite extends AnyFunSuite {
  test("the last number that a run should have is taken once") {
    val wanted = new WantedRescales
    assert(wanted.isEmpty && wanted.take("run").isEmpty)
    wanted.want("run", 4)
    wanted.want("run", 8)
    wanted.want("other", 2)
    assert(!wanted.isEmpty && wanted.take("run").contains(8) && wanted.take("run").isEmpty)
    wanted.forget("other")
    assert(wanted.isEmpty)
  }
}
