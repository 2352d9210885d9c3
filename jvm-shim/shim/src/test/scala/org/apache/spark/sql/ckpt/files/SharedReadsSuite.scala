// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.files

import java.io.IOException
import java.util.concurrent.{CountDownLatch, ExecutionException, Future}
import java.util.concurrent.atomic.AtomicInteger

import scala.concurrent.duration._

import org.apache.spark.util.ThreadUtils
import org.scalatest.concurrent.Eventually
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Millis, Seconds, Span}

class SharedReadsSuite extends AnyFunSuite with Eventually {
  implicit override val patienceConfig: PatienceConfig = PatienceConfig(Span(60, Seconds), Span(20, Millis))

  private val pool = ThreadUtils.newDaemonCachedThreadPool("shared-reads-suite")

  private def ask(shared: SharedReads, path: String, length: Int = 10)(read: => Array[Byte]): Future[Array[Byte]] =
    shared.read(path, length, pool)(read)

  test("all that ask for a file share one read, even while it lasts") {
    val shared = new SharedReads(100)
    val reads = new AtomicInteger
    val latch = new CountDownLatch(1)
    val answers = Seq.fill(5)(ask(shared, "a") {
      reads.incrementAndGet()
      latch.await()
      Array[Byte](7)
    })
    latch.countDown()
    assert(answers.map(_.get().toSeq) == Seq.fill(5)(Seq[Byte](7)))
    assert(ask(shared, "b")(Array[Byte](8)).get().toSeq == Seq[Byte](8))
    assert(reads.get() == 1 && shared.size == 20)
  }

  test("a failure reaches all that share the read, and the next one tries again") {
    val shared = new SharedReads(100)
    val latch = new CountDownLatch(1)
    val answers = Seq.fill(3)(ask(shared, "a") {
      latch.await()
      throw new IOException("throttled")
    })
    latch.countDown()
    answers.foreach(answer => assert(intercept[ExecutionException](answer.get()).getCause.getMessage == "throttled"))
    assert(shared.size == 0)
    assert(ask(shared, "a")(Array[Byte](1)).get().toSeq == Seq[Byte](1))
  }

  test("the copies used last stay within the bound") {
    val shared = new SharedReads(100, maxBytes = 25)
    val reads = new AtomicInteger
    def read(path: String): Unit = ask(shared, path)(Array[Byte](reads.incrementAndGet().toByte)).get()
    Seq("a", "b", "a", "c").foreach(read)
    assert(shared.size == 20 && reads.get() == 3)
    read("a")
    assert(reads.get() == 3)
    read("b")
    assert(reads.get() == 4)
  }

  test("no copy stays for long without use") {
    var now = 0L
    val shared = new SharedReads(100, idle = 1.hour, now = () => now)
    ask(shared, "a")(Array[Byte](1)).get()
    now = 30.minutes.toNanos
    ask(shared, "a")(fail()).get()
    now = 89.minutes.toNanos
    shared.purge()
    assert(shared.size == 10)
    now = 90.minutes.toNanos
    shared.purge()
    assert(shared.size == 0)
  }

  test("copies go by a timer, and those that come later too") {
    val shared = new SharedReads(100, idle = 100.millis)
    for (_ <- 1 to 2) {
      ask(shared, "a")(Array[Byte](1)).get()
      eventually(assert(shared.size == 0))
    }
  }
}
