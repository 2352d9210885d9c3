// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import java.lang.ref.WeakReference
import java.util.concurrent.{CountDownLatch, TimeUnit}

import scala.concurrent.duration.Duration

import io.github.sparkckpt.engine.backend.HashMapStateBackend
import io.github.sparkckpt.engine.restore.{LookupBudget, StoredSegments}
import io.github.sparkckpt.engine.segment.StateSegment
import org.scalatest.concurrent.Eventually._
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

import org.apache.spark.sql.ckpt.compaction.SharedCore

class LaterLoadsSuite extends AnyFunSuite {
  private val never: Long = TimeUnit.MINUTES.toNanos(5)

  /** No rows, whose load begins and waits until the latch is opened. */
  private class Stuck extends StoredSegments {
    val begun = new CountDownLatch(1)
    val end = new CountDownLatch(1)
    override val keyGroups: IndexedSeq[Array[Int]] = IndexedSeq.empty
    override def reading(wanted: Seq[Int])(body: (Int => StateSegment) => Unit): Unit = {
      begun.countDown()
      end.await()
      body(_ => throw new AssertionError("there are no segments"))
    }
    override def lookingUp(segment: Int)(body: StateSegment => Unit): Unit = ()
    override def close(): Unit = ()
    override def unreadable(cause: Throwable): Throwable = cause
    override def loaded(rows: Long): Unit = ()
  }

  private def pending(segments: StoredSegments): HashMapStateBackend = {
    val backend = new HashMapStateBackend(4)
    backend.declareFamily("default", (_, _, _) => 0)
    backend.restoreLater(1, 0, segments, LookupBudget.Zero)
    backend
  }

  test("states are loaded one after another, and those that wait are not kept alive for that") {
    val loads = new LaterLoads(new SharedCore(never, never))
    val first = new Stuck
    val held = pending(first)
    loads.add("the first store", held, Duration.Zero, () => true)
    assert(first.begun.await(5, TimeUnit.MINUTES))
    try {
      val (unwanted, wanted) = (new Stuck, new Stuck)
      def given(): WeakReference[HashMapStateBackend] = {
        val backend = pending(unwanted)
        loads.add("a store that is given up", backend, Duration.Zero, () => true)
        new WeakReference(backend)
      }
      val gone = given()
      val kept = pending(wanted)
      loads.add("the last store", kept, Duration.Zero, () => true)
      eventually(timeout(5.minutes)) {
        System.gc()
        assert(gone.get() == null)
      }
      wanted.end.countDown()
      first.end.countDown()
      eventually(timeout(5.minutes))(assert(!held.isPending && !kept.isPending))
      assert(unwanted.begun.getCount == 1)
    } finally first.end.countDown()
  }
}
