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

class SideBySideSuite extends AnyFunSuite {

  test("requests wait side by side, and give their answers or exceptions") {
    val both = new CountDownLatch(2)
    def request(answer: Int): Int = {
      both.countDown()
      both.await()
      answer
    }
    val (first, second) = (SideBySide.begin(request(1)), SideBySide.begin(request(2)))
    assert(first.answer() == 1 && second.answer() == 2 && first.answer() == 1)
    val missing = SideBySide.begin[Int](throw new FileNotFoundException("missing"))
    assert(intercept[FileNotFoundException](missing.answer()).getMessage == "missing")
  }

  test("where requests are quick, the caller makes them at once") {
    val thread = SideBySide.beginIf(slow = false)(Thread.currentThread())
    assert(thread.answer() eq Thread.currentThread())
    assert(SideBySide.beginIf(slow = true)(Thread.currentThread()).answer() ne Thread.currentThread())
    intercept[FileNotFoundException](SideBySide.beginIf[Int](slow = false)(throw new FileNotFoundException))
  }
}
