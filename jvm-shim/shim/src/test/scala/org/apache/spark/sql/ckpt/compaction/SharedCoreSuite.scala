// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compaction

import java.util.concurrent.{CountDownLatch, TimeUnit}
import java.util.concurrent.atomic.AtomicInteger

import org.scalatest.concurrent.Eventually._
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

class SharedCoreSuite extends AnyFunSuite {
  private val long = TimeUnit.HOURS.toNanos(1)

  private def inThread(body: => Unit): Thread = {
    val thread = new Thread(() => body)
    thread.start()
    thread
  }

  test("one thread works at a time, and all of them get on") {
    val core = new SharedCore(workNanos = 0, waitNanos = long)
    val (working, most) = (new AtomicInteger, new AtomicInteger)
    val threads = (1 to 3).map(_ => inThread {
      val turns = new core.Turns(() => false)
      turns.begin()
      (1 to 200).foreach { _ =>
        most.accumulateAndGet(working.incrementAndGet(), math.max(_, _))
        working.decrementAndGet()
        turns.pass()
      }
      turns.end()
    })
    threads.foreach(_.join())
    assert(most.get == 1)
  }

  test("a thread passes the core on while it is in the middle of its work") {
    val core = new SharedCore(workNanos = 0, waitNanos = long)
    val first = new core.Turns(() => false)
    first.begin()
    @volatile var isDone = false
    val second = inThread {
      val turns = new core.Turns(() => false)
      turns.begin()
      isDone = true
      turns.end()
    }
    eventually(timeout(5.minutes))(assert(second.getState == Thread.State.TIMED_WAITING))
    assert(!isDone)
    first.pass()
    assert(isDone)
    second.join()
    first.end()
  }

  test("a thread does not wait for ever for one that is stuck") {
    val core = new SharedCore(workNanos = 0, waitNanos = 1000)
    val stuck = new core.Turns(() => false)
    stuck.begin()
    val other = new core.Turns(() => false)
    other.begin()
    other.pass()
    other.end()
    stuck.end()
    val last = new SharedCore(workNanos = long, waitNanos = long)
    val turns = new last.Turns(() => false)
    turns.begin()
    turns.pass()
    turns.end()
  }

  test("work that a task waits for starts at once, and delays no other work") {
    val core = new SharedCore(workNanos = 0, waitNanos = long)
    @volatile var isUrgent = false
    val (passed, end) = (new CountDownLatch(1), new CountDownLatch(1))
    val first = new core.Turns(() => isUrgent)
    first.begin()
    isUrgent = true
    first.pass()
    val second = inThread {
      val turns = new core.Turns(() => false)
      turns.begin()
      passed.countDown()
      end.await()
      turns.end()
    }
    assert(passed.await(5, TimeUnit.MINUTES))
    first.pass()
    val third = new core.Turns(() => true)
    third.begin()
    end.countDown()
    second.join()
  }
}
