// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import java.io.{File, RandomAccessFile}

import io.github.sparkckpt.engine.pages.LocalStateException
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.{SparkConf, SparkEnv}
import org.apache.spark.util.Utils

/** A store whose state does not fit into its memory. */
class StoreLocalDiskSuite extends AnyFunSuite {
  private def withStore(settings: (String, String)*)(body: StoreHarness => Unit): Unit = {
    val harness = new StoreHarness(settings: _*)
    try body(harness) finally harness.close()
  }

  private def localFiles: Seq[File] =
    Option(LocalDisk.directoryIn(Utils.getLocalDir(SparkEnv.get.conf)).listFiles()).toSeq.flatten

  private def damage(): Unit = localFiles.foreach { path =>
    val file = new RandomAccessFile(path, "rw")
    try for (at <- 0L until file.length() by 64) {
      file.seek(at)
      val byte = file.read()
      file.seek(at)
      file.write(byte ^ 8)
    } finally file.close()
  }

  test("state beyond the budget is on the local disk, with figures, until the store is released") {
    withStore("memory.budget" -> "1") { h =>
      h.commit(0, 1L to 3000L: _*)
      val second = h.commit(1, 500L)
      assert(h.read(2) == (1L to 3000L).toSet)
      val figures = h.metrics(second)
      assert(figures("ckptLocalBytes") > 3000 * 24 && figures("ckptLocalReads") == 1)
      assert(figures("ckptLocalReadBytes") > 0 && figures("ckptLocalWrittenBytes") > 3000 * 24)
      assert(h.provider.subtask.memoryBytes < 200000)
      assert(localFiles.nonEmpty)
      h.notify("ended", 2)
      assert(localFiles.isEmpty)
      assert(h.read(2) == (1L to 3000L).toSet)
    }
  }

  test("files have a place without Spark too, as in Spark's own suites of stores") {
    val env = SparkEnv.get
    SparkEnv.set(null)
    try {
      val file = LocalDisk.tier(memoryBudget = 1).newFile().toFile
      assert(file.getParentFile == LocalDisk.directoryIn(Utils.getLocalDir(new SparkConf)))
      assert(file.getParentFile.isDirectory && file.getParent.contains("standalone"))
    } finally SparkEnv.set(env)
  }

  test("state within the default budget is in memory only") {
    withStore() { h =>
      h.commit(0, 1L to 3000L: _*)
      val figures = h.metrics(h.commit(1, 500L))
      assert(figures.filter(_._1.startsWith("ckptLocal")).values.forall(_ == 0) && localFiles.isEmpty)
    }
  }

  test("a task that meets damage on the local disk fails without an ack, and the next attempt loads the state again") {
    withStore("memory.budget" -> "1") { h =>
      h.commit(0, 1L to 3000L: _*)
      h.commit(1, 3001L)
      h.read(2)
      damage()
      val acks = h.heard("ack")
      h.asTask(batch = 2, taskAttemptId = 10)
      val store = h.open(2)
      val failure = intercept[LocalStateException](for (n <- 1L to 3000L) store.get(h.row(n), "default"))
      assert(failure.getMessage.contains("loads the state again"))
      store.abort()
      assert(h.heard("ack") == acks)
      h.asTask(batch = 2, taskAttemptId = 11)
      h.commit(2, 3002L)
      assert(h.read(3) == (1L to 3002L).toSet)
    }
  }

  test("a fold that meets damage loses the state in memory, and no batch") {
    withStore("memory.budget" -> "1") { h =>
      h.commit(0, 1L to 3000L: _*)
      h.read(1)
      val store = h.open(1)
      // Enough dead records that the fold reads pages to compact them.
      for (n <- 1L to 3000L if n % 2 == 0) store.remove(h.row(n), "default")
      store.commit()
      damage()
      intercept[LocalStateException](h.open(2))
      assert(h.read(2) == (1L to 3000L by 2).toSet)
    }
  }
}
