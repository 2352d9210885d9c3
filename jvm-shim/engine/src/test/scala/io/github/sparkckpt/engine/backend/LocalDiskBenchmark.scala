// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

import java.io.OutputStream
import java.nio.file.{Files, Path}
import java.util.{SplittableRandom, UUID}

import io.github.sparkckpt.engine.pages.{LocalTier, MemoryBudget}
import io.github.sparkckpt.engine.support.BackendTesting

import org.apache.spark.unsafe.Platform

/**
 * Times the backend with state beyond its budget: keys of 16 bytes, values of 40. Not part of the tests; run with the
 * test class path as `LocalDiskBenchmark keys changes batches budget-MB uniform|zipf|window [directory]`. A budget of 0
 * keeps all state in memory.
 */
object LocalDiskBenchmark extends BackendTesting {
  private val K = 1024
  private val key = new Array[Byte](16)
  private val value = new Array[Byte](40)

  def main(args: Array[String]): Unit = {
    val keys = args(0).toLong
    val changes = args(1).toInt
    val batches = args(2).toInt
    val budget = args(3).toLong << 20
    val directory = args.lift(5).fold(Files.createTempDirectory("local-disk"))(Path.of(_))
    val memory = new MemoryBudget
    val local =
      if (budget == 0) null else new LocalTier(budget, memory, () => directory.resolve(UUID.randomUUID().toString))
    val backend = new HashMapStateBackend(K, logsWrites = false, local)
    val family = backend.declareFamily("default", groupsByHash(K))
    val start = System.nanoTime()
    load(backend, family, keys)
    println(f"load: ${(System.nanoTime() - start) / 1e9}%.1f s, ${written(local) / 1e6}%.0f MB written")
    state(backend, keys, memory)
    val next = chooser(args(4), keys)
    for (phase <- Seq("warm-up", "batches", "batches, base in the background")) {
      val writer = if (phase.endsWith("background")) writeBase(backend) else null
      val before = (reads(local), readBytes(local), written(local))
      val times = (0 until batches).map { b =>
        val t = System.nanoTime()
        backend.openForWrite(backend.version)
        var i = 0
        while (i < changes) {
          change(family, args(4), next, b, i)
          i += 1
        }
        backend.commit()
        backend.deltaBytes()
        backend.fold()
        (System.nanoTime() - t) / 1e6
      }
      val sorted = times.sorted
      val n = batches.toDouble
      println(f"$phase: ms ${sorted(batches / 2)}%.1f, max ${sorted.last}%.1f; a batch: reads " +
        f"${(reads(local) - before._1) / n}%.0f, read ${(readBytes(local) - before._2) / n / 1e6}%.2f MB, " +
        f"written ${(written(local) - before._3) / n / 1e6}%.2f MB, raw changes ${changes * 56 / 1e6}%.2f MB")
      if (writer != null) writer.join()
      state(backend, keys, memory)
    }
    backend.close()
  }

  private var newest = 0L
  private var oldest = 0L

  private def change(family: HashMapTable, what: String, next: () => Long, batch: Int, i: Int): Unit =
    if (what == "window" && i % 10 != 0) {
      setKey(newest)
      newest += 1
      family.put(key, Start, 16, value, Start, 40)
      setKey(oldest)
      oldest += 1
      if (!family.remove(key, Start, 16)) throw new IllegalStateException("lost a key")
    } else {
      setKey(if (what == "window") oldest + next() % (newest - oldest) else next())
      if (!family.get(key, Start, 16)) throw new IllegalStateException("lost a key")
      Platform.copyMemory(family.valueBase, family.valueOffset, value, Start, 40)
      Platform.putLong(value, Start + 8, Platform.getLong(value, Start + 8) + 1)
      family.put(key, Start, 16, value, Start, 40)
    }

  private def load(backend: HashMapStateBackend, family: HashMapTable, keys: Long): Unit = {
    while (newest < keys) {
      backend.openForWrite(backend.version)
      val until = math.min(keys, newest + 100000)
      while (newest < until) {
        setKey(newest)
        family.put(key, Start, 16, value, Start, 40)
        newest += 1
      }
      backend.commit()
      backend.fold()
    }
  }

  private def setKey(i: Long): Unit = {
    Platform.putLong(key, Start, i)
    Platform.putLong(key, Start + 8, i * 0x9E3779B97F4A7C15L)
  }

  /** Zipf by the rejection-inversion method for an exponent of 0.99, scattered over the keys. */
  private def chooser(what: String, keys: Long): () => Long = {
    val r = new SplittableRandom(1)
    if (what == "zipf") {
      val s = 0.99
      val least = (1 - math.pow(1.0, 1 - s)) / (1 - s)
      val most = (math.pow(keys + 0.5, 1 - s) - 1) / (1 - s)
      () => {
        val x = math.pow(1 + (least + r.nextDouble() * (most - least)) * (1 - s), 1 / (1 - s))
        Math.floorMod(x.toLong * 2654435761L, keys)
      }
    } else {
      () => r.nextLong(keys)
    }
  }

  private def writeBase(backend: HashMapStateBackend): Thread = {
    val snapshot = backend.snapshotBase()
    val thread = new Thread(() => {
      val t = System.nanoTime()
      val info = snapshot.write(OutputStream.nullOutputStream())
      snapshot.close()
      println(f"base: ${(System.nanoTime() - t) / 1e9}%.1f s, ${info.bytes / 1e6}%.0f MB")
    })
    thread.start()
    thread
  }

  private def state(backend: HashMapStateBackend, keys: Long, memory: MemoryBudget): Unit = {
    System.gc()
    val heap = Runtime.getRuntime.totalMemory - Runtime.getRuntime.freeMemory
    println(f"heap after GC ${heap / 1e6}%.0f MB, counted ${backend.memoryBytes / 1e6}%.0f MB, budget " +
      f"${memory.used / 1e6}%.0f MB; local ${backend.localBytes / 1e6}%.0f MB, raw ${keys * 56 / 1e6}%.0f MB")
  }

  private def reads(tier: LocalTier): Long = if (tier == null) 0 else tier.reads
  private def readBytes(tier: LocalTier): Long = if (tier == null) 0 else tier.readBytes
  private def written(tier: LocalTier): Long = if (tier == null) 0 else tier.writtenBytes
}
