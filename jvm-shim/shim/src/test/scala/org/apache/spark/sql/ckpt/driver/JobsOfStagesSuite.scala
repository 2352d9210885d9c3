// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import org.scalatest.funsuite.AnyFunSuite

class JobsOfStagesSuite extends AnyFunSuite {
  test("a job takes its stages with it, those that failed or were cancelled too") {
    val jobs = new JobsOfStages
    for (run <- 0 until 10000) {
      jobs.put(2 * run, s"run-$run")
      jobs.put(2 * run + 1, s"run-$run")
      jobs.remove(2 * run)
      assert(jobs.get(2 * run + 1).contains(s"run-$run"))
      jobs.forget(s"run-$run")
    }
    assert(jobs.size == 0)
  }

  test("the stages of other jobs stay") {
    val jobs = new JobsOfStages
    jobs.put(1, "a")
    jobs.put(2, "b")
    jobs.forget("a")
    assert(jobs.get(1).isEmpty && jobs.get(2).contains("b"))
  }
}
