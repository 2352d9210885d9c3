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
package org.apache.spark.sql.ckpt.common

import java.io.FileNotFoundException
import java.util.concurrent.CountDownLatch

import org.scalatest.funsuite.AnyFunSuite

class BackgroundRequestsSuite extends AnyFunSuite {

  test("requests run beside each other, and give their results or exceptions") {
    val both = new CountDownLatch(2)
    def request(answer: Int): Int = {
      both.countDown()
      both.await()
      answer
    }
    val (first, second) = (BackgroundRequests.begin(request(1)), BackgroundRequests.begin(request(2)))
    assert(first.result() == 1 && second.result() == 2 && first.result() == 1)
    val missing = BackgroundRequests.begin[Int](throw new FileNotFoundException("missing"))
    assert(intercept[FileNotFoundException](missing.result()).getMessage == "missing")
  }

  test("where requests are quick, the caller makes them at once") {
    val thread = BackgroundRequests.beginIf(slow = false)(Thread.currentThread())
    assert(thread.result() eq Thread.currentThread())
    assert(BackgroundRequests.beginIf(slow = true)(Thread.currentThread()).result() ne Thread.currentThread())
    intercept[FileNotFoundException](BackgroundRequests.beginIf[Int](slow = false)(throw new FileNotFoundException))
  }
}
