// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

import java.io.OutputStream
import java.util.Random

import io.github.sparkckpt.engine.pages.{LocalTier, MemoryBudget}
import io.github.sparkckpt.engine.segment.SegmentBytes
import io.github.sparkckpt.engine.support.{BackendTesting, ByteOrder, FirstWordPrefix}
import io.github.sparkckpt.engine.table.KeyAccess

import org.apache.spark.unsafe.Platform

/**
 * Times the backend alone: 16-byte keys and values, as a count by a long key has. Not part of the tests;
 * run with the test class path as `BackendBenchmark [keys] [changes] [batches]`.
 */
object BackendBenchmark extends BackendTesting {
  private val K = 1024
  private val threads = java.lang.management.ManagementFactory.getThreadMXBean
  private val key = new Array[Byte](16)
  private val value = new Array[Byte](16)

  /** A local disk that is never used, as most stores have. */
  private val roomy = new LocalTier(
    Runtime.getRuntime.maxMemory, new MemoryBudget, () => throw new IllegalStateException("memory is full"))

  def main(args: Array[String]): Unit = {
    val keys = args.lift(0).fold(1000000)(_.toInt)
    val changes = args.lift(1).fold(10000)(_.toInt)
    val batches = args.lift(2).fold(60)(_.toInt)

    val backend = new HashMapStateBackend(K, logsWrites = false, tier = roomy)
    val family = backend.declareFamily("default", groupsByHash(K))
    fill(backend, family, keys)
    val each = backend.memoryBytes.toDouble / keys
    println(f"memory: $each%.1f bytes an entry (32 raw), heap ${heap() / 1e6}%.0f MB")

    for (aggregated <- Seq(false, true); snapshots <- Seq(false, true); size <- Seq(changes, keys / 2)) {
      run(backend, family, keys, size, math.max(6, math.min(batches, 6000000 / size)), snapshots, aggregated)
    }
    val segment = write(backend, keys)
    for (_ <- 0 until 4) read(segment, keys, backend.version)
    iterate(backend, keys)
    scans("prefix", new FirstWordPrefix, keys / 4, changes)
    scans("ordered", new ByteOrder, keys / 4, changes)
  }

  /** Like session windows: scan the keys of a prefix, remove one, put one. */
  private def scans(name: String, access: KeyAccess, keys: Int, changes: Int): Unit = {
    val backend = new HashMapStateBackend(K)
    val family = backend.declareFamily("default", groupsByHash(K), access)
    backend.openForWrite(0)
    for (i <- 0 until keys) put(family, longs(i * 0x9E3779B97F4A7C15L, 0), longs(0, 0))
    backend.commit()
    backend.fold()
    println(f"$name%7s: ${backend.memoryBytes.toDouble / keys}%.1f bytes an entry (32 raw)")
    val r = new Random(1)
    val batches = 40
    val times = Array.fill(4)(new Array[Long](batches))
    for (b <- 1 to batches) {
      backend.openForWrite(backend.version)
      val t = new Array[Long](4)
      for (_ <- 0 until changes) {
        val prefix = longs(r.nextInt(keys) * 0x9E3779B97F4A7C15L)
        val t0 = System.nanoTime()
        val scan = family.prefixScan(prefix, Start, 8)
        scan.advance()
        Platform.copyMemory(scan.keyBase, scan.keyOffset, key, Start, 16)
        while (scan.advance()) {}
        val t1 = System.nanoTime()
        family.remove(key, Start, 16)
        Platform.putLong(key, Start + 8, b)
        family.put(key, Start, 16, value, Start, 16)
        t(0) += t1 - t0
        t(1) += System.nanoTime() - t1
      }
      backend.commit()
      val t2 = now()
      backend.fold()
      t(2) = now() - t2
      for (i <- 0 until 3) times(i)(b - 1) = t(i)
    }
    val Seq(scan, write, fold) = times.toSeq.take(3).map(t => t.sorted.apply(batches / 2).toDouble / changes)
    println(f"$name%7s, ns of wall clock: scan $scan%.0f, remove and put $write%.0f, fold $fold%.0f (CPU)")
  }

  private def fill(backend: HashMapStateBackend, family: HashMapTable, keys: Int): Unit = {
    backend.openForWrite(0)
    var i = 0
    while (i < keys) {
      setKey(i)
      family.put(key, Start, 16, value, Start, 16)
      i += 1
    }
    backend.commit()
    backend.fold()
  }

  private def setKey(i: Int): Unit = Platform.putLong(key, Start + 8, i * 0x9E3779B97F4A7C15L)

  private def run(
      backend: HashMapStateBackend,
      family: HashMapTable,
      keys: Int,
      changes: Int,
      batches: Int,
      snapshots: Boolean,
      aggregated: Boolean): Unit = {
    val r = new Random(1)
    val times = Array.fill(4)(new Array[Long](batches))
    for (b <- 0 until batches) {
      val snapshot = if (snapshots) backend.snapshotBase() else null
      val t0 = now()
      backend.openForWrite(backend.version)
      val t1 = now()
      if (aggregated) aggregate(backend, family, keys, changes, r) else update(family, keys, changes, r)
      val t2 = now()
      val delta = backend.deltaBytes()
      backend.commit()
      val t3 = now()
      backend.fold()
      val t4 = now()
      times(0)(b) = t2 - t1
      times(1)(b) = t3 - t2
      times(2)(b) = t4 - t3
      times(3)(b) = t4 - t0
      if (snapshot != null) snapshot.close()
    }
    val Seq(work, commit, fold, all) = times.toSeq.map(t => t.sorted.apply(batches / 2).toDouble)
    val order = if (aggregated) "aggregated" else "one by one"
    println(f"$changes%7d changes of $keys, $order, ${if (snapshots) "shared pages" else "no snapshot"}%12s: " +
      f"get+put ${work / changes}%6.0f ns, delta ${commit / changes}%6.0f ns, " +
      f"fold ${fold / changes}%6.0f ns, batch ${all / 1e6}%8.2f ms, worst ${times(3).max / 1e6}%8.2f ms")
  }

  /** Reads and puts one key after another. */
  private def update(family: HashMapTable, keys: Int, changes: Int, r: Random): Unit = {
    var i = 0
    while (i < changes) {
      setKey(r.nextInt(keys))
      if (!family.get(key, Start, 16)) throw new IllegalStateException("lost a key")
      Platform.putLong(value, Start + 8, Platform.getLong(family.valueBase, family.valueOffset + 8) + 1)
      family.put(key, Start, 16, value, Start, 16)
      i += 1
    }
  }

  /** Reads all keys through a view, then puts them: as an aggregation by hash does, with a hash table in between. */
  private def aggregate(
      backend: HashMapStateBackend, family: HashMapTable, keys: Int, changes: Int, r: Random): Unit = {
    val view = backend.reader("default", backend.foldedVersion)
    val chosen = Array.fill(changes)(r.nextInt(keys))
    var sum = 0L
    chosen.foreach { i =>
      setKey(i)
      if (!view.get(key, Start, 16)) throw new IllegalStateException("lost a key")
      sum += Platform.getLong(view.valueBase, view.valueOffset + 8)
    }
    chosen.foreach { i =>
      setKey(i)
      Platform.putLong(value, Start + 8, sum)
      family.put(key, Start, 16, value, Start, 16)
    }
  }

  private def write(backend: HashMapStateBackend, keys: Int): SegmentBytes = {
    val nothing = OutputStream.nullOutputStream()
    for (_ <- 0 until 3) {
      val t0 = now()
      val snapshot = backend.snapshotBase()
      val t1 = now()
      val info = snapshot.write(nothing)
      snapshot.close()
      val t2 = now()
      println(f"base: snapshot ${(t1 - t0) / 1e3}%.0f us, write ${(t2 - t1) / 1e6}%.0f ms, " +
        f"${info.bytes / 1e6}%.1f MB, ${keys * 1e3 / (t2 - t1)}%.2f M entries/s")
    }
    base(backend)
  }

  private def read(from: SegmentBytes, keys: Int, version: Long): Unit = {
    val backend = new HashMapStateBackend(K)
    backend.declareFamily("default", groupsByHash(K))
    val t0 = now()
    backend.restore(version, keys, Seq(segment(isBase = true, from)), everything)
    val t1 = now()
    println(f"restore: ${(t1 - t0) / 1e6}%.0f ms, ${keys * 1e3 / (t1 - t0)}%.2f M entries/s")
    require(backend.rowCount == keys)
  }

  private def iterate(backend: HashMapStateBackend, keys: Int): Unit = {
    for (_ <- 0 until 3) {
      val t0 = now()
      val i = backend.table("default").iterator()
      var sum = 0L
      while (i.advance()) sum += Platform.getLong(i.valueBase, i.valueOffset + 8)
      println(f"iterate: ${(now() - t0).toDouble / keys}%.1f ns an entry ($sum)")
    }
  }

  /** CPU time of this thread: other processes on the machine do not count. */
  private def now(): Long = threads.getCurrentThreadCpuTime

  private def heap(): Double = {
    for (_ <- 0 until 3) System.gc()
    (Runtime.getRuntime.totalMemory - Runtime.getRuntime.freeMemory).toDouble
  }
}
