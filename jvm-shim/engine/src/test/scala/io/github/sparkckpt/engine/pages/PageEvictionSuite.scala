// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.{Files, Path}
import java.nio.file.StandardOpenOption.{READ, WRITE}
import java.util.UUID
import java.util.concurrent.atomic.AtomicBoolean

import scala.jdk.CollectionConverters._
import scala.util.Random

import io.github.sparkckpt.engine.backend.{HashMapStateBackend, HashMapTable}
import io.github.sparkckpt.engine.support.{ByteOrder, EvictedState}
import org.scalatest.funsuite.AnyFunSuite

class PageEvictionSuite extends AnyFunSuite with EvictedState {
  private val K = 16

  private class Store(val tier: LocalTier) {
    val backend = new HashMapStateBackend(K, logsWrites = false, tier)
    backend.declareFamily("default", groupsByHash(K))
    val model = new Model

    def family: HashMapTable = backend.table("default")

    def batch(changes: => Unit): Unit = {
      backend.openForWrite(backend.version)
      changes
      backend.commit()
      backend.fold()
    }

    def set(key: Array[Byte], value: Array[Byte]): Unit = {
      put(family, key, value)
      model.put(ByteBuffer.wrap(key), ByteBuffer.wrap(value))
    }

    def unset(key: Array[Byte]): Unit = {
      remove(family, key)
      model.remove(ByteBuffer.wrap(key))
    }

    def check(): Unit = {
      assertSame(contents(family), model)
      model.forEach((k, v) => assert(ByteBuffer.wrap(get(family, k.array)) == v))
    }

    def reads: Long = tier.reads
  }

  private def newTier(limit: Long): LocalTier = {
    val directory = Files.createTempDirectory("evicted")
    EvictedState.tier(directory, limit)
  }

  private def filled(n: Int, limit: Long = 1, seed: Int = 3): Store = {
    val s = new Store(newTier(limit))
    val r = new Random(seed)
    s.batch(for (i <- 0 until n) s.set(longs(i, i), randomBytes(r, 40)))
    s
  }

  private def newestFile(tier: LocalTier): Path = {
    val files = Files.list(tier.newFile().getParent)
    try files.iterator.asScala.maxBy(Files.size(_)) finally files.close()
  }

  private def flipAll(path: Path): Unit = {
    val channel = FileChannel.open(path, READ, WRITE)
    try {
      val all = ByteBuffer.allocate(channel.size.toInt)
      channel.read(all, 0)
      for (i <- 0 until all.capacity by 64) all.put(i, (all.get(i) ^ 4).toByte)
      all.rewind()
      channel.write(all, 0)
    } finally channel.close()
  }

  test("nearly all of a table leaves memory beyond the budget, and nothing within it") {
    val s = filled(20000)
    assert(s.family.table.localBytes > 20000 * 64 * 0.95)
    assert(s.family.table.pages.bytes < 10000)
    s.check()
    val roomy = filled(20000, limit = 1L << 30)
    assert(roomy.family.table.localBytes == 0 && roomy.tier.writtenBytes == 0)
  }

  test("a key that is read and put is read from the disk once, and the fold reads nothing") {
    val s = filled(50000)
    val r = new Random(4)
    val keys = Seq.fill(2000)(r.nextInt(45000)).distinct.map(i => longs(i, i))
    s.backend.openForWrite(s.backend.version)
    val before = s.reads
    keys.foreach(k => assert(get(s.family, k) != null))
    val found = s.reads
    // A record may lie across two blocks that are not read at once.
    assert(found - before <= keys.size * 1.05)
    keys.zipWithIndex.foreach { case (k, i) => if (i % 5 == 0) s.unset(k) else s.set(k, randomBytes(r, 8 * (i % 9))) }
    keys.foreach(k => get(s.family, k))
    s.backend.commit()
    s.backend.deltaBytes()
    assert(s.reads == found)
    s.backend.fold()
    assert(s.reads == found)
    s.check()
  }

  test("a record that changes in each batch stays in memory") {
    val s = filled(50000, limit = 2L << 20)
    val keys = (0 until 100).map(i => longs(i * 450, i * 450))
    for (i <- 0 until 5) s.batch(keys.foreach(k => s.set(k, longs(1, 2, 3, 4, i))))
    val r = new Random(5)
    s.batch(for (i <- 0 until 5000) s.set(longs(r.nextInt(50000), 7), randomBytes(r, 40)))
    s.backend.openForWrite(s.backend.version)
    val before = s.reads
    keys.foreach(k => assert(get(s.family, k) != null))
    assert(s.reads == before)
    s.check()
  }

  test("dead records on the disk are reclaimed, also while a snapshot has their pages") {
    val s = filled(40000)
    val r = new Random(6)
    val snapshot = s.backend.snapshotBase()
    val before = copyOf(s.model)
    var worst = 0L
    for (b <- 0 until 60) {
      s.batch(for (_ <- 0 until 2000) {
        val i = r.nextInt(40000)
        s.set(longs(i, i), randomBytes(r, 40))
      })
      if (b == 10) {
        val written = snapshot.toBytes()
        snapshot.close()
        val other = new HashMapStateBackend(K)
        other.restore(1, 0, Seq(segment(isBase = true, written)), everything)
        assertSame(contents(other.reader("default", 1)), before)
      }
      worst = math.max(worst, s.family.table.localBytes)
    }
    // Blocks of 4 KiB for pages of 2 KiB double the size.
    assert(worst < 40000 * 64 * 2 / 0.65)
    assert(Files.size(newestFile(s.tier)) < 40000 * 64 * 2 * 2)
    s.check()
  }

  test("pages without live records are given up without reading") {
    val s = filled(20000)
    val bytes = s.family.table.localBytes
    s.backend.openForWrite(s.backend.version)
    val keys = (0 until 20000 - 200).map(i => longs(i, i))
    keys.foreach(s.unset)
    val before = s.reads
    s.backend.commit()
    s.backend.fold()
    assert(s.reads == before)
    assert(s.family.table.localBytes < bytes / 50)
    s.check()
  }

  test("stores of one budget stay within it together, loading included") {
    val limit = 8L << 20
    val directory = Files.createTempDirectory("evicted")
    var stores = Seq.empty[Store]
    val shared = new LocalTier(limit, new MemoryBudget, () => directory.resolve(UUID.randomUUID().toString),
      shedAll = () => stores.foreach(_.backend.evict()))
    stores = Seq.fill(4)(new Store(shared))
    val r = new Random(7)
    val full = filled(60000, limit = 1L << 30)
    val written = base(full.backend)
    stores.foreach { s =>
      s.backend.restore(1, 60000, Seq(segment(isBase = true, written)), everything)
      s.model.putAll(full.model)
      assert(shared.budget.used < limit * 1.1)
    }
    for (_ <- 0 until 10; s <- stores) {
      s.batch(for (_ <- 0 until 1000) {
        val i = r.nextInt(60000)
        s.set(longs(i, i), randomBytes(r, 40))
      })
      assert(shared.budget.used < limit * 1.1)
      assert(stores.map(_.backend.memoryBytes).sum < limit * 1.1)
    }
    stores.foreach(_.check())
    stores.foreach(_.backend.close())
    assert(shared.budget.used == 0)
    assert(Files.list(directory).count() == 0)
  }

  test("a store evicts pages while its task reads and writes") {
    val budget = new MemoryBudget
    val directory = Files.createTempDirectory("evicted")
    val tier = new LocalTier(
      8L << 20, budget, () => directory.resolve(UUID.randomUUID().toString), maxPageWords = 256)
    val t = new Store(tier)
    t.batch(for (i <- 0 until 30000) t.set(longs(i, i), longs(1, 2, 3, 4, i)))
    assert(t.backend.localBytes == 0)
    t.backend.openForWrite(1)
    val other = budget.open()
    val stop = new AtomicBoolean
    val shedder = new Thread(() => for (i <- 1 to 60 if !stop.get()) {
      other.set((8L << 20) * i / 60, 0)
      t.backend.evict()
      Thread.sleep(5)
    })
    shedder.start()
    val r = new Random(9)
    try {
      while (shedder.isAlive) {
        for (_ <- 0 until 1000) {
          val k = r.nextInt(30000)
          assert(ByteBuffer.wrap(get(t.family, longs(k, k))) == t.model.get(ByteBuffer.wrap(longs(k, k))))
          if (k % 10 == 0) t.set(longs(k, k), longs(k))
        }
        assertSame(contents(t.family), t.model)
      }
    } finally {
      stop.set(true)
      shedder.join()
    }
    assert(t.backend.localBytes > 0)
    t.backend.commit()
    t.backend.fold()
    t.check()
  }

  test("a walk meets pages that another thread evicts, and frees since all their records are dead") {
    for (round <- 0 until 8) {
      val budget = new MemoryBudget
      val directory = Files.createTempDirectory("evicted")
      val tier = new LocalTier(
        8L << 20, budget, () => directory.resolve(UUID.randomUUID().toString), maxPageWords = 256)
      val t = new Store(tier)
      t.batch(for (i <- 0 until 8000) t.set(longs(i, i), longs(1, 2, 3, 4, i)))
      // Beside the snapshot, the records are marked as dead, and their pages stay.
      val snapshot = t.backend.snapshotBase()
      t.batch(for (i <- 0 until 8000 if (i / 80 + round) % 5 == 0) t.unset(longs(i, i)))
      assert(t.family.table.pages.marks.pages > 20 && t.backend.localBytes == 0)
      t.backend.openForWrite(t.backend.version)
      val other = budget.open()
      val shedder = new Thread(() => for (i <- 1 to 20) {
        other.set((8L << 20) * i / 20, 0)
        t.backend.evict()
      })
      shedder.start()
      try while (shedder.isAlive) assertSame(contents(t.family), t.model) finally shedder.join()
      assert(t.backend.localBytes > 0)
      t.check()
      snapshot.close()
      t.backend.discard()
      t.check()
      t.backend.close()
    }
  }

  test("long records leave memory too, and grow in new places") {
    val s = new Store(newTier(1))
    val r = new Random(8)
    for (b <- 0 until 10) {
      s.batch(for (i <- 0 until 50) s.set(longs(i), randomBytes(r, 8192 + 8 * r.nextInt(20000))))
      assert(s.family.table.pages.bytes < 50000)
    }
    assert(s.family.table.localBytes < 50 * 100000 * 2)
    s.check()
  }

  test("files go with the state: when it is cleared, closed, dropped or indexed anew") {
    val s = filled(5000)
    assert(Files.exists(newestFile(s.tier)))
    def files = {
      val found = Files.list(s.tier.newFile().getParent)
      try found.count() finally found.close()
    }
    assert(files == 1)
    s.backend.clear(0)
    assert(files == 0)
    s.batch(for (i <- 0 until 5000) put(s.family, longs(i), longs(i)))
    assert(files == 1)
    s.batch(s.backend.dropFamily("default"))
    assert(files == 0)
    s.backend.declareFamily("default", groupsByHash(K))
    s.batch(for (i <- 0 until 5000) put(s.family, longs(i), longs(i)))
    assert(files == 1)
    s.backend.declareFamily("default", groupsByHash(K), new ByteOrder)
    assert(files == 0 && s.family.rowCount == 5000)
    s.backend.declareFamily("default", groupsByHash(K))
    assert(files == 1)
    val snapshot = s.backend.snapshotBase()
    s.backend.close()
    assert(files == 1)
    assert(snapshot.toBytes().info.entries == 5000)
    snapshot.close()
    assert(files == 0)
  }

  test("pages that a snapshot has in memory are evicted meanwhile") {
    val budget = new MemoryBudget
    val directory = Files.createTempDirectory("evicted")
    val tier = new LocalTier(4L << 20, budget, () => directory.resolve(UUID.randomUUID().toString))
    val s = new Store(tier)
    s.batch(for (i <- 0 until 20000) s.set(longs(i, i), longs(1, 2, 3, 4, i)))
    assert(s.family.table.localBytes == 0)
    val before = copyOf(s.model)
    val snapshots = Seq.fill(2)(s.backend.snapshotBase())
    s.batch(for (i <- 0 until 100000) s.set(longs(i, 7), longs(1, 2, 3, 4, -i)))
    assert(s.family.table.localBytes > 0)
    snapshots.foreach { snapshot =>
      val other = new HashMapStateBackend(K)
      other.restore(1, 0, Seq(segment(isBase = true, snapshot.toBytes())), everything)
      snapshot.close()
      assertSame(contents(other.reader("default", 1)), before)
    }
    s.check()
  }

  test("records that died beside a snapshot stay dead when their pages are evicted, for later snapshots too") {
    val directory = Files.createTempDirectory("evicted")
    val s = new Store(new LocalTier(4L << 20, new MemoryBudget, () => directory.resolve(UUID.randomUUID().toString)))
    s.batch(for (i <- 0 until 20000) s.set(longs(i, i), longs(1, 2, 3, 4, i)))
    val first = (s.backend.snapshotBase(), copyOf(s.model))
    s.batch {
      for (i <- 0 until 40) s.set(longs(i * 500, i * 500), longs(5, 6, 7, 8, i))
      for (i <- 0 until 40) s.unset(longs(i * 500 + 1, i * 500 + 1))
    }
    val marks = s.family.table.pages.marks
    val marked = (0 until s.family.table.pages.numbers).filter(marks.on(_) != null)
    assert(marked.nonEmpty && s.family.table.localBytes == 0)
    val second = (s.backend.snapshotBase(), copyOf(s.model))
    s.batch(for (i <- 0 until 100000) s.set(longs(i, 7), longs(1, 2, 3, 4, -i)))
    assert(marked.exists(s.family.table.pages.localAt(_) != null), "no page with marks was evicted")
    s.check()
    val third = (s.backend.snapshotBase(), copyOf(s.model))
    Seq(first, second, third).zipWithIndex.foreach { case ((snapshot, model), i) =>
      val other = new HashMapStateBackend(K)
      other.restore(i + 1, 0, Seq(segment(isBase = true, snapshot.toBytes())), everything)
      snapshot.close()
      assertSame(contents(other.reader("default", i + 1)), model)
    }
    s.batch(for (i <- 0 until 40) s.set(longs(i * 500 + 1, i * 500 + 1), longs(9, i)))
    assert(marks.pages == 0)
    s.check()
  }

  test("damage on the disk fails the reader, and the state is no longer served") {
    val s = filled(5000)
    val written = base(s.backend)
    val wanted = copyOf(s.model)
    flipAll(newestFile(s.tier))
    assert(s.backend.canServe(1))
    s.backend.openForWrite(1)
    val snapshot = s.backend.snapshotBase()
    val failure = intercept[LocalStateException](for (i <- 0 until 5000) get(s.family, longs(i, i)))
    assert(failure.getMessage.contains("checksum"))
    assert(s.backend.isBroken && !s.backend.canServe(1))
    intercept[LocalStateException](snapshot.toBytes())
    snapshot.close()
    intercept[LocalStateException](contents(s.family))
    s.backend.restore(1, 0, Seq(segment(isBase = true, written)), everything)
    assert(!s.backend.isBroken && s.backend.canServe(1))
    assertSame(contents(s.family), wanted)
  }

  test("a snapshot that meets damage writes no base") {
    val s = filled(5000)
    val snapshot = s.backend.snapshotBase()
    flipAll(newestFile(s.tier))
    intercept[LocalStateException](snapshot.toBytes())
    snapshot.close()
    assert(s.backend.isBroken)
  }

  for (when <- Seq("folding", "loading")) {
    test(s"a full disk while $when drops the state") {
      val s = filled(5000)
      val written = base(s.backend)
      val open = LocalFile.open
      LocalFile.open = (path, options) => {
        if (options.size > 2) open(path, options).close()
        FileChannel.open(Path.of("/dev/full"), WRITE)
      }
      try {
        val failure = intercept[LocalStateException] {
          if (when == "loading") {
            s.backend.restore(1, 0, Seq(segment(isBase = true, written)), everything)
          } else {
            s.backend.clear(0)
            s.batch(for (i <- 0 until 5000) put(s.family, longs(i), longs(i)))
          }
        }
        assert(failure.getMessage.contains("No space left on device"))
      } finally LocalFile.open = open
      assert(s.backend.foldedVersion == -1 && !s.backend.canServe(1))
      s.backend.restore(1, 0, Seq(segment(isBase = true, written)), everything)
      s.check()
    }
  }
}
