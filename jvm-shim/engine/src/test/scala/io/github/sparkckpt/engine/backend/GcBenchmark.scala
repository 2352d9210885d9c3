// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

import java.nio.file.{Files, Paths}
import java.util.Random

import scala.jdk.CollectionConverters.CollectionHasAsScala

import io.github.sparkckpt.engine.support.BackendTesting

import org.apache.spark.unsafe.Platform

/**
 * Pauses for garbage collection with much state in one heap, beside those without state. Not part of the tests; run
 * with the test class path as `java -Xlog:gc:file=LOG ... GcBenchmark LOG KEYS SECONDS`. The pauses are those in the
 * log from a few seconds after the state was written. 0 keys give the pauses of the other work alone.
 */
object GcBenchmark extends BackendTesting {
  private val K = 1024
  private val Stores = 8
  private val ChangesPerBatch = 10000
  private val GarbagePerBatch = 100 << 20
  private val SettlingSeconds = 5
  private val Pause = """\[([0-9.]+)s\].* Pause .* ([0-9.]+)ms""".r.unanchored

  private val key = new Array[Byte](16)
  private val value = new Array[Byte](16)

  /** What rows, buffers and tasks of Spark leave behind: one in 64 survives for a while. */
  private val survivors = new Array[Array[Byte]](1024)

  def main(args: Array[String]): Unit = {
    val Array(log, keys, seconds) = args
    val each = (keys.toLong / Stores).toInt
    val stores = Seq.fill(Stores) {
      val backend = new HashMapStateBackend(K)
      (backend, backend.declareFamily("default", groupsByHash(K)))
    }
    for ((backend, family) <- stores; first <- 0 until each by 1000000) {
      change(backend, family, first until math.min(each, first + 1000000))
    }
    val state = stores.map(_._1.memoryBytes).sum
    // The last pages of the load are still young, and are copied in the first collections.
    val started = uptime() + SettlingSeconds
    val random = new Random(1)
    var batches = 0
    while (uptime() < started + seconds.toDouble) {
      for ((backend, family) <- stores if each > 0) {
        change(backend, family, Iterator.fill(ChangesPerBatch / Stores)(random.nextInt(each)).to(Seq))
      }
      leaveGarbage(random)
      batches += 1
    }
    report(log, 0, "with the load")
    report(log, started, f"${state / 1e9}%.1f GB of state, $batches batches")
  }

  private def change(backend: HashMapStateBackend, family: HashMapTable, keys: Seq[Int]): Unit = {
    backend.openForWrite(backend.version)
    for (i <- keys) {
      Platform.putLong(key, Start + 8, i * 0x9E3779B97F4A7C15L)
      Platform.putLong(value, Start + 8, backend.version)
      family.put(key, Start, 16, value, Start, 16)
    }
    backend.commit()
    backend.fold()
  }

  private def leaveGarbage(random: Random): Unit = {
    var left = GarbagePerBatch
    while (left > 0) {
      val garbage = new Array[Byte](64 + random.nextInt(16 << 10))
      if (random.nextInt(64) == 0) survivors(random.nextInt(survivors.length)) = garbage
      left -= garbage.length
    }
  }

  private def report(log: String, since: Double, what: String): Unit = {
    val lines = Files.readAllLines(Paths.get(log)).asScala.toSeq
    val pauses = lines.collect { case Pause(at, ms) if at.toDouble >= since => ms.toDouble }.sorted
    def percentile(p: Double) = if (pauses.isEmpty) 0 else pauses((p * (pauses.size - 1)).round.toInt)
    println(f"$what, ${pauses.size} pauses: p50 ${percentile(0.5)}%.1f ms, p99 ${percentile(0.99)}%.1f ms, " +
      f"longest ${percentile(1)}%.1f ms")
  }

  /** Seconds since the start of the JVM, as in its log. */
  private def uptime(): Double = java.lang.management.ManagementFactory.getRuntimeMXBean.getUptime / 1e3
}
