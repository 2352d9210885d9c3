// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.files

import java.util.concurrent.{ExecutorService, Future, FutureTask}
import java.util.concurrent.TimeUnit.{MILLISECONDS, NANOSECONDS}

import scala.concurrent.duration._

import org.apache.spark.sql.ckpt.common.OwnThreads

/**
 * Small files of a remote storage, each read once for all stores of the executor. A file has the changes of many tasks,
 * so after a restart all stores ask for parts of the same files, one after another, and a request takes longer than
 * the rest of a small file.
 *
 * Files never change, so a copy is as good as the file. Copies stay for a short while. Thread-safe.
 *
 * @param maxFile  bytes of the largest file that is read as a whole
 * @param maxBytes bytes of all copies, at most
 * @param idle     time without use after which no copy stays
 * @param now      nanoseconds of a clock that never goes back
 */
private[ckpt] final class SharedReads(
    val maxFile: Int,
    maxBytes: Long = 32L << 20,
    idle: FiniteDuration = 10.seconds,
    now: () => Long = () => System.nanoTime()) {
  private val copies = new java.util.LinkedHashMap[String, Copy](16, 0.75f, /* accessOrder = */ true)
  private var bytes = 0L
  private var lastUse = 0L
  private var isPurgeScheduled = false

  /** Bytes of the copies, also of those that are being read. */
  def size: Long = synchronized(bytes)

  /**
   * The bytes of a file. All that ask while a copy is there share one read, and its failure.
   *
   * @param read reads the file, on a thread of the pool
   */
  def read(path: String, length: Int, pool: ExecutorService)(read: => Array[Byte]): Future[Array[Byte]] =
    synchronized {
      lastUse = now()
      val known = copies.get(path)
      if (known != null) {
        known.task
      } else {
        val copy = new Copy(path, length, read)
        copies.put(path, copy)
        bytes += length
        val oldest = copies.values().iterator()
        while (bytes > maxBytes && oldest.hasNext) {
          bytes -= oldest.next().length
          oldest.remove()
        }
        if (!isPurgeScheduled) schedulePurge()
        pool.execute(copy.task)
        copy.task
      }
    }

  /** The next one to ask tries again. */
  private def forget(copy: Copy): Unit = synchronized {
    if (copies.remove(copy.path, copy)) bytes -= copy.length
  }

  private def schedulePurge(): Unit = {
    isPurgeScheduled = true
    SharedReads.timer.schedule((() => purge()): Runnable, idle.toMillis, MILLISECONDS)
  }

  /** Drops all copies, unless one was used a short while ago. */
  private[files] def purge(): Unit = synchronized {
    isPurgeScheduled = false
    if (NANOSECONDS.toMillis(now() - lastUse) >= idle.toMillis) {
      copies.clear()
      bytes = 0
    } else {
      schedulePurge()
    }
  }

  private final class Copy(val path: String, val length: Int, read: => Array[Byte]) {
    val task: FutureTask[Array[Byte]] = new FutureTask[Array[Byte]](() =>
      try read catch {
        case e: Throwable =>
          forget(this)
          throw e
      })
  }
}

private[ckpt] object SharedReads {

  /** Of all stores of this JVM. An object store sends 1 MiB in about the time of a request. */
  val here = new SharedReads(maxFile = 1 << 20)

  private lazy val timer = OwnThreads.timer("spark-ckpt-shared-reads")
}
