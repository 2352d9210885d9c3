// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import java.lang.ref.WeakReference
import java.util.concurrent.{CountDownLatch, TimeUnit}

import io.github.sparkckpt.engine.backend.HashMapStateBackend
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.concurrent.Eventually._
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

import org.apache.spark.sql.ckpt.CheckpointStateStoreProvider
import org.apache.spark.sql.ckpt.compaction.BaseSnapshots
import org.apache.spark.sql.ckpt.files.StateFiles
import org.apache.spark.sql.ckpt.protocol.CompactionRequest
import org.apache.spark.sql.execution.streaming.state.StateStore

/** Spark unloads a store when its partition goes to another executor, be it with a copy of a task that still runs. */
class StoreUnloadSuite extends AnyFunSuite {
  private def withStore(settings: (String, String)*)(body: StoreHarness => Unit): Unit = {
    val harness = new StoreHarness(settings: _*)
    try body(harness) finally harness.close()
  }

  /** A task in the second batch of a store that is unloaded when it has put a row. */
  private def unloaded(h: StoreHarness, provider: CheckpointStateStoreProvider): StateStore = {
    val first = provider.getStore(0)
    first.put(h.row(0), h.row(0))
    first.commit()
    val second = provider.getStore(1)
    second.put(h.row(1), h.row(1))
    provider.close()
    second
  }

  test("a task continues with a store that is unloaded, and its ack may count") {
    withStore() { h =>
      val store = unloaded(h, h.newProvider(partition = 1))
      assert(store.get(h.row(0)) != null && store.get(h.row(1)) != null)
      store.put(h.row(2), h.row(2))
      store.commit()
      assert(h.read(2) == Set(0, 1, 2))
    }
  }

  test("a store that is unloaded begins no base, since it will send no further ack") {
    withStore("ackThreshold" -> "0") { h =>
      def commitWithBaseDue(store: StateStore): Unit = {
        h.coordinator.baseDue = true
        store.commit()
        h.coordinator.baseDue = false
      }
      commitWithBaseDue(unloaded(h, h.newProvider(partition = 1)))
      h.commit(0, 1)
      commitWithBaseDue(h.open(1))
      // Bases are written one after the other: when this one is there, so would be that of the other store.
      var version = 2L
      eventually(timeout(5.minutes)) {
        version += 1
        assert(h.metrics(h.commit(version - 1, version))("ckptBaseBytes") > 0)
      }
      assert(h.files.count(_.startsWith("base")) == 1)
    }
  }

  test("a base that the last task of an unloaded store has written, and no ack takes, leaves no file") {
    withStore("ackThreshold" -> "0") { h =>
      val provider = h.newProvider(partition = 1)
      (0 to 1).foreach { version =>
        val store = provider.getStore(version)
        store.put(h.row(version), h.row(version))
        store.commit()
      }
      // The batch comes once more: its ack brings no base.
      val again = provider.getStore(1, None, forceSnapshotOnCommit = true, loadEmpty = false)
      again.put(h.row(1), h.row(1))
      provider.close()
      again.commit()
      assert(!h.files.exists(_.startsWith("base")) && h.files.nonEmpty)
    }
  }

  for (isBaseDue <- Seq(false, true)) {
    test(s"nothing holds a store that is unloaded, once its task has ended; with a base that waits: $isBaseDue") {
      val (begun, end) = (new CountDownLatch(1), new CountDownLatch(1))
      withStore() { h =>
        val stuck = new StateFiles(new Path(h.location.toUri), new Configuration(), _ => {
          begun.countDown()
          end.await()
        })
        val first = new BaseSnapshots("a base before", stuck, () => -1L)
        first.follow(CompactionRequest.Base, new HashMapStateBackend(1).snapshotBase())
        assert(begun.await(5, TimeUnit.MINUTES))
        def used(): WeakReference[CheckpointStateStoreProvider] = {
          val provider = h.newProvider(partition = 1)
          h.coordinator.baseDue = isBaseDue
          unloaded(h, provider).commit()
          new WeakReference(provider)
        }
        try {
          val gone = used()
          h.asTask(batch = 2)
          eventually(timeout(1.minute)) {
            System.gc()
            assert(gone.get() == null)
          }
        } finally {
          end.countDown()
          first.forget()
        }
      }
    }
  }
}
