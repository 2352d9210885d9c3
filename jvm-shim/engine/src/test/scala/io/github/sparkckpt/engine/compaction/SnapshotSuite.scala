// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.compaction

import java.util.concurrent.{Callable, Executors, TimeUnit}

import scala.collection.mutable
import scala.util.Random

import io.github.sparkckpt.engine.backend.{HashMapStateBackend, HashMapTable}
import io.github.sparkckpt.engine.pages.RecordPages
import io.github.sparkckpt.engine.segment.SegmentBytes
import io.github.sparkckpt.engine.support.{BackendTesting, FirstWordPrefix}
import org.scalatest.funsuite.AnyFunSuite

class SnapshotSuite extends AnyFunSuite with BackendTesting {
  private val K = 128

  test("snapshots written by another thread during later batches are consistent") {
    val r = new Random(7)
    val backend = newBackend(K)
    val family = backend.declareFamily("default", groupsByHash(K), new FirstWordPrefix)
    val model = new Model
    val writers = Executors.newFixedThreadPool(2)
    try {
      val results = for (version <- 0L until 40L) yield {
        backend.openForWrite(version)
        // Taken in the middle of a batch: the batch does not touch the tables.
        for (_ <- 0 until 2000) change(r, family, model)
        val expected = copyOf(folded(backend))
        val snapshot = backend.snapshotBase()
        for (_ <- 0 until 500) change(r, family, model)
        backend.commit()
        val task: Callable[SegmentBytes] = () => {
          try snapshot.toBytes()
          finally snapshot.close()
        }
        (version, expected, writers.submit(task))
      }
      results.foreach { case (version, expected, written) =>
        val other = newBackend(K)
        val s = written.get(5, TimeUnit.MINUTES)
        other.restore(version, 0, Seq(segment(isBase = true, s)), everything)
        assertSame(contents(other.reader("default", version)), expected, s"version $version")
      }
    } finally {
      writers.shutdownNow()
    }
    assertSame(contents(family), model)
  }

  test("snapshots taken and written by another thread at any moment are of one version each") {
    val r = new Random(8)
    val backend = newBackend(K)
    val family = backend.declareFamily("default", groupsByHash(K), new FirstWordPrefix)
    val model = new Model
    val models = mutable.Map(0L -> copyOf(model))
    val writer = Executors.newSingleThreadExecutor()
    try {
      val results = for (version <- 0L until 60L) yield {
        backend.openForWrite(version)
        for (_ <- 0 until 300) change(r, family, model)
        backend.commit(s"state ${version + 1}")
        models(version + 1) = copyOf(model)
        // One that is closed before the thread comes to it is never taken.
        val snapshot = new DeferredSnapshot(() => backend.snapshotBase())
        if (version % 10 == 9) snapshot.close()
        val task: Callable[Option[(Long, String, SegmentBytes)]] = () =>
          try Some((snapshot.version, snapshot.stateId, snapshot.toBytes()))
          catch { case _: IllegalStateException if version % 10 == 9 => None }
          finally snapshot.close()
        (version, writer.submit(task))
      }
      results.foreach { case (queued, written) =>
        val result = written.get(5, TimeUnit.MINUTES)
        assert(result.isEmpty == (queued % 10 == 9))
        result.foreach { case (version, stateId, bytes) =>
          assert(version >= queued)
          assert(stateId == (if (version == 0) "" else s"state $version"))
          val other = newBackend(K)
          other.restore(version, 0, Seq(segment(isBase = true, bytes)), everything)
          assertSame(contents(other.reader("default", version)), models(version), s"version $version")
        }
      }
    } finally {
      writer.shutdownNow()
    }
  }

  test("a snapshot that waits is of the version folded when it is written, and copies nothing before") {
    val backend = newBackend(K)
    val family = backend.declareFamily("default", groupsByHash(K))
    def next(): Unit = {
      backend.openForWrite(backend.version)
      put(family, longs(1), longs(backend.version))
      backend.commit(s"state ${backend.version}")
      backend.fold()
    }
    next()
    val waiting = new DeferredSnapshot(() => backend.snapshotBase())
    next()
    assert(!family.table.pages.hasSnapshots)
    assert(waiting.version == 2 && waiting.rows == 1)
    if (tier == null) assert(family.table.pages.hasSnapshots)
    val stateId = waiting.stateId
    next()
    assert(waiting.version == 2 && waiting.stateId == stateId)
    assert(contents(family).size == 1)
    waiting.close()
    intercept[IllegalStateException](waiting.toBytes())
    val late = new DeferredSnapshot(() => backend.snapshotBase())
    backend.close()
    intercept[IllegalStateException](late.version)
  }

  private def folded(b: HashMapStateBackend): Model = contents(b.reader("default", b.foldedVersion))

  private def change(r: Random, family: HashMapTable, model: Model): Unit = {
    val key = longs(r.nextInt(50), r.nextInt(100))
    if (r.nextInt(3) == 0) {
      remove(family, key)
      model.remove(java.nio.ByteBuffer.wrap(key))
    } else {
      val value = randomBytes(r, 8 * (1 + r.nextInt(3)))
      put(family, key, value)
      model.put(java.nio.ByteBuffer.wrap(key), java.nio.ByteBuffer.wrap(value))
    }
  }

  // Pages on the local disk are never changed.
  if (tier == null) {
    test("few changes copy records, not the pages that a snapshot has") {
      val s = new Store(20000)
      val pages = s.pages
      val (bytes, before) = (s.bytes, copyOf(s.model))
      val snapshot = s.backend.snapshotBase()
      s.batch {
        for (i <- 0 until 100) s.set(i * 199, longs(-1, -1))
        for (i <- 0 until 20) s.unset(i * 199 + 1)
      }
      assert(pages.indices.forall(i => s.family.table.pages.pageAt(i) eq pages(i)))
      assert(s.bytes - bytes < 100 * 40 + RecordPages.MaxPageWords * 8 + s.marked * 1024 + 256)
      s.check()
      // The open page has new records beside those of the snapshot.
      assertSame(restored(snapshot), before)
      // A second snapshot, while the first one is open, knows what died since.
      val second = s.backend.snapshotBase()
      val between = copyOf(s.model)
      s.batch(for (i <- 0 until 100) s.set(i * 199, longs(-2, -2)))
      assertSame(restored(second), between)
      assertSame(restored(snapshot), before)
      Seq(snapshot, second).foreach(_.close())
      s.check()
    }

    test("many changes copy the pages") {
      val s = new Store(20000)
      val pages = s.pages
      val before = copyOf(s.model)
      val snapshot = s.backend.snapshotBase()
      s.batch(for (i <- 0 until 10000) s.set(i * 2, longs(-1, -1)))
      assert(pages.indices.forall(i => !(s.family.table.pages.pageAt(i) eq pages(i))))
      assertSame(restored(snapshot), before)
      // Few changes afterwards change the copies.
      val copies = s.pages
      s.batch(for (i <- 0 until 50) s.set(i * 300, longs(-2, -2)))
      assert(copies.indices.forall(i => s.family.table.pages.pageAt(i) eq copies(i)))
      assert(s.marked == 0)
      snapshot.close()
      s.check()
    }

    test("places of records that died beside a snapshot are used again after it") {
      val s = new Store(20000)
      val before = s.bytes
      for (round <- 0 until 100) {
        val snapshot = s.backend.snapshotBase()
        s.batch(for (i <- 0 until 100) s.set((i * 199 + round * 7) % 20000, longs(-round, round)))
        assert(s.marked > 0)
        snapshot.close()
        s.batch(for (i <- 0 until 100) s.set(30000 + i + round * 100, longs(round, round)))
        assert(s.marked == 0)
        s.batch(for (i <- 0 until 100) s.unset(30000 + i + round * 100))
        // At most a fifth is dead.
        val most = before * 1.25 + 3 * RecordPages.MaxPageWords * 8
        assert(s.bytes < most, s"memory grows with each snapshot, round $round")
      }
      s.check()
    }

    test("lists that grow beside a snapshot leave its pages alone") {
      val backend = newBackend(K)
      val family = backend.declareFamily("default", groupsByHash(K), multiValue = true)
      def append(rows: Int): Unit = {
        backend.openForWrite(backend.version)
        if (rows > 0) for (i <- 0 until 500) {
          family.startList()
          for (j <- 0 until rows) family.addToList(longs(i, j), Start, 16)
          family.appendList(longs(i), Start, 8)
        }
        backend.commit()
        backend.fold()
      }
      append(10)
      append(1)
      for (_ <- 0 until 20) append(0) // until places that died are reclaimed
      val pages = family.table.pages
      val before = contents(family)
      val arrays = (0 until pages.numbers).map(pages.pageAt)
      val snapshot = backend.snapshotBase()
      backend.openForWrite(backend.version)
      for (i <- 0 until 20) {
        family.startList()
        family.addToList(longs(7, 7), Start, 16)
        family.appendList(longs(i * 20), Start, 8)
      }
      backend.commit()
      backend.fold()
      assert(arrays.indices.forall(i => arrays(i) == null || (pages.pageAt(i) eq arrays(i))))
      assert(pages.marks.pages > 0)
      assertSame(restored(snapshot), before)
      snapshot.close()
    }
  }

  private class Store(keys: Int) {
    val backend: HashMapStateBackend = newBackend(K)
    val family: HashMapTable = backend.declareFamily("default", groupsByHash(K))
    val model = new Model
    batch(for (i <- 0 until keys) set(i, longs(i, i)))

    def batch(changes: => Unit): Unit = {
      backend.openForWrite(backend.version)
      changes
      backend.commit()
      backend.fold()
    }

    def set(key: Int, value: Array[Byte]): Unit = {
      put(family, longs(key), value)
      model.put(java.nio.ByteBuffer.wrap(longs(key)), java.nio.ByteBuffer.wrap(value))
    }

    def unset(key: Int): Unit = {
      remove(family, longs(key))
      model.remove(java.nio.ByteBuffer.wrap(longs(key)))
    }

    def pages: IndexedSeq[Array[Byte]] = {
      val all = family.table.pages
      (0 until all.numbers).map(all.pageAt)
    }

    def bytes: Long = family.table.pages.bytes + family.table.pages.marks.bytes

    def marked: Int = family.table.pages.marks.pages

    def check(): Unit = {
      assertSame(contents(family), model)
      assert(backend.rowCount == model.size)
    }
  }

  private def restored(snapshot: BaseSnapshot): Model = {
    val other = newBackend(K)
    other.restore(snapshot.version, 0, Seq(segment(isBase = true, snapshot.toBytes())), everything)
    contents(other.reader("default", snapshot.version))
  }

  test("snapshots that overlap, few and many changes, and lost places, are of one version each") {
    val r = new Random(11)
    val s = new Store(8000)
    val open = mutable.Queue.empty[(BaseSnapshot, Model)]
    for (_ <- 0 until 120) {
      if (r.nextInt(3) == 0) open.enqueue((s.backend.snapshotBase(), copyOf(s.model)))
      val changes = if (r.nextInt(4) == 0) 3000 else r.nextInt(60)
      s.batch(for (_ <- 0 until changes) {
        val key = r.nextInt(9000)
        if (r.nextInt(4) == 0) s.unset(key)
        else s.set(key, longs(Seq.fill(1 + r.nextInt(3) / 2)(r.nextLong()): _*))
      })
      if (open.size > 3 || (open.nonEmpty && r.nextInt(3) == 0)) {
        val (snapshot, model) = open.dequeue()
        assertSame(restored(snapshot), model)
        snapshot.close()
      }
      if (r.nextInt(10) == 0) s.check()
    }
    open.foreach { case (snapshot, model) =>
      assertSame(restored(snapshot), model)
      snapshot.close()
    }
    s.check()
  }

  test("a snapshot knows its version, rows and size") {
    val backend = newBackend(K)
    val family = backend.declareFamily("default", groupsByHash(K))
    backend.openForWrite(0)
    put(family, longs(1), longs(1, 2))
    backend.commit()
    val empty = backend.snapshotBase()
    assert(empty.version == 0 && empty.rows == 0)
    backend.fold()
    val one = backend.snapshotBase()
    assert(one.version == 1 && one.rows == 1 && one.rawBytes == 24)
    empty.close()
    one.close()
  }
}
