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
