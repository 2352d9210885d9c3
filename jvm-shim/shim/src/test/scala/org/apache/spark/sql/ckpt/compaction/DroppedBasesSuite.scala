// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compaction

import java.nio.file.Files
import java.util.UUID
import java.util.concurrent.{CountDownLatch, TimeUnit}
import java.util.concurrent.atomic.AtomicReference

import io.github.sparkckpt.engine.backend.{HashMapStateBackend, HashMapTable}
import io.github.sparkckpt.engine.bytes.Bytes
import io.github.sparkckpt.engine.compaction.{BaseSnapshot, DeferredSnapshot}
import io.github.sparkckpt.engine.pages.{LocalTier, MemoryBudget}
import io.github.sparkckpt.engine.support.LiveHeap
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.concurrent.Eventually._
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

import org.apache.spark.{TaskContext, TaskKilledException}
import org.apache.spark.sql.ckpt.files.StateFiles
import org.apache.spark.sql.ckpt.protocol.CompactionRequest
import org.apache.spark.unsafe.Platform
import org.apache.spark.util.Utils

/** Bases that wait, or are being written, when their store is given up: what they keep of its state. */
class DroppedBasesSuite extends AnyFunSuite with LiveHeap {
  private val due = CompactionRequest.Base
  private val directory = Utils.createTempDir(namePrefix = "dropped-bases").toPath
  private val Rows = 100000
  private val Start = Platform.BYTE_ARRAY_OFFSET.toLong

  /** A storage that takes nothing until the latch is opened, and tells that it was asked. */
  private class Stuck {
    val begun = new CountDownLatch(1)
    val end = new CountDownLatch(1)
    val files = new StateFiles(new Path(directory.toUri), new Configuration(), _ => {
      begun.countDown()
      end.await()
    })

    def bases(name: String): BaseSnapshots = new BaseSnapshots(name, files, () => -1L)
  }

  private def filled(tier: LocalTier = null): HashMapStateBackend = {
    val backend = new HashMapStateBackend(16, logsWrites = false, tier)
    val family = backend.declareFamily(
      "default", (base: AnyRef, offset: Long, length: Int) => Bytes.hash(base, offset, length) & 15)
    write(backend, family, 0)
    backend
  }

  private def write(backend: HashMapStateBackend, family: HashMapTable, by: Int): Unit = {
    val (key, value) = (new Array[Byte](8), new Array[Byte](96))
    backend.openForWrite(backend.version)
    (0 until Rows).foreach { i =>
      Platform.putLong(key, Start, i)
      Platform.putLong(value, Start, by)
      family.put(key, Start, 8, value, Start, 96)
    }
    backend.commit()
    backend.fold()
  }

  /** Waits until all bases before have ended: one is written after another. */
  private def awaitLane(): Unit = {
    val files = new StateFiles(new Path(directory.toUri), new Configuration())
    val last = new BaseSnapshots("the last store", files, () => 1000L)
    last.follow(due, new HashMapStateBackend(1).snapshotBase())
    eventually(timeout(5.minutes))(assert(last.isReady))
    last.forget()
  }

  private def deferred(backend: HashMapStateBackend): BaseSnapshot =
    new DeferredSnapshot(() => backend.snapshotBase(), () => backend.loadRest())

  test("bases that wait behind others keep nothing of a state that was given up") {
    val stuck = new Stuck
    val first = stuck.bases("the first store")
    first.follow(due, deferred(filled()))
    assert(stuck.begun.await(5, TimeUnit.MINUTES))
    try {
      val before = liveHeap()
      def ended(): Long = {
        val stores = Seq.fill(3)(filled()).map(backend => (backend, stuck.bases("a store")))
        stores.foreach { case (backend, bases) => bases.follow(due, deferred(backend)) }
        val whole = liveHeap() - before
        stores.foreach { case (backend, bases) =>
          bases.forget()
          backend.close()
        }
        whole
      }
      val whole = ended()
      assert(whole > 3L * Rows * 100)
      val left = liveHeap() - before
      assert(left <= whole / 10, s"$left of $whole bytes still live")
    } finally {
      stuck.end.countDown()
      first.forget()
      awaitLane()
    }
  }

  test("a base that is being written when its store is given up counts as memory until its end, and then is gone") {
    val stuck = new Stuck
    val local = Files.createTempDirectory("dropped-bases")
    val budget = new MemoryBudget
    val tier = new LocalTier(1L << 30, budget, () => local.resolve(UUID.randomUUID().toString))
    awaitLane()
    val before = liveHeap()
    def ended(): Unit = {
      val backend = filled(tier)
      val bases = stuck.bases("a store")
      bases.follow(due, deferred(backend))
      assert(stuck.begun.await(5, TimeUnit.MINUTES))
      write(backend, backend.table("default"), 1)
      assertCounted(backend.memoryBytes, liveHeap() - before, "a base in progress")
      backend.openForWrite(backend.version)
      backend.discard()
      bases.forget()
      backend.close()
    }
    try {
      ended()
      assertCounted(budget.used, liveHeap() - before, "a base in progress of a store that was given up")
    } finally stuck.end.countDown()
    eventually(timeout(5.minutes)) {
      assert(budget.used == 0)
      assert(liveHeap() - before < Rows * 10)
      assert(!Files.exists(directory.resolve("shared")) || directory.resolve("shared").toFile.list().isEmpty)
    }
  }

  test("a task that is killed does not wait for a base that another thread writes") {
    val stuck = new Stuck
    val backend = filled()
    val bases = stuck.bases("a store")
    bases.follow(CompactionRequest.RequiredBase, deferred(backend))
    assert(stuck.begun.await(5, TimeUnit.MINUTES))
    val context = TaskContext.empty()
    val error = new AtomicReference[Throwable]
    val task = new Thread(() => {
      TaskContext.setTaskContext(context)
      try bases.forAck(deferred(backend)) catch { case e: Throwable => error.set(e) }
    })
    task.setDaemon(true)
    task.start()
    try {
      eventually(timeout(5.minutes))(assert(task.getState.name.contains("WAITING")))
      context.markInterrupted("test")
      eventually(timeout(1.minute))(assert(error.get.isInstanceOf[TaskKilledException]))
    } finally {
      stuck.end.countDown()
      bases.forget()
      backend.close()
      awaitLane()
    }
  }
}
