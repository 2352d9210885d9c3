// SPDX-License-Identifier: Apache-2.0
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
