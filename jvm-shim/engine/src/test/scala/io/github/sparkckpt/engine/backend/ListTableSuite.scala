// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

import java.lang.management.ManagementFactory

import scala.collection.mutable
import scala.util.Random

import io.github.sparkckpt.engine.bytes.{Bytes, ListCursor}
import io.github.sparkckpt.engine.segment.StateSegment
import io.github.sparkckpt.engine.support.BackendTesting
import org.scalatest.funsuite.AnyFunSuite

class ListTableSuite extends AnyFunSuite with BackendTesting {
  private val K = 16
  private def declared(backend: HashMapStateBackend): HashMapTable =
    backend.declareFamily("default", groupsByHash(K), multiValue = true)

  private def rows(f: TableReader, key: Array[Byte]): Seq[Seq[Byte]] = {
    if (f.get(key, Start, key.length)) {
      read(new ListCursor().reset(f.valueBase, f.valueOffset, f.valueLength))
    } else {
      Nil
    }
  }

  private def read(c: ListCursor): Seq[Seq[Byte]] = {
    val all = mutable.Buffer[Seq[Byte]]()
    while (c.hasNext) {
      assert(c.advance())
      all += bytes(c.rowBase, c.rowOffset, c.rowLength).toSeq
    }
    assert(!c.advance())
    all.toSeq
  }

  for (logsWrites <- Seq(false, true)) {
    val deltas = if (logsWrites) "deltas of every write" else "deltas"
    test(s"random puts, appends and removals agree with a map of lists, through folds and $deltas") {
      agreesWithMap(newBackend(K, logsWrites), longestRow = 4, readOneIn = 1)
    }

    test(s"lists from few bytes to many pages agree with a map of lists, some read before they grow, through $deltas") {
      agreesWithMap(newBackend(K, logsWrites), longestRow = 250, readOneIn = 5)
    }
  }

  // A record on the local disk is never changed.
  for (size <- Seq(1000, 5000, 100000) if tier == null) {
    test(s"appends to a list that reaches $size bytes copy the list once per eighth of growth") {
      val backend = newBackend(K)
      val family = declared(backend)
      val row = longs(1, 2)
      val list = longs(7)
      var address = 0
      var copied = 0L
      var appended = 0L
      while (appended < size) {
        backend.openForWrite(backend.version)
        family.append(list, Start, 8, row, Start, 16)
        // Records behind this one, so that it cannot grow into free memory.
        put(family, longs(appended), Array.ofDim[Byte](4))
        backend.commit()
        backend.fold()
        appended += 20
        val now = family.table.find(Bytes.hash(list, Start, 8), list, Start, 8)
        if (now != address) copied += appended
        address = now
      }
      assert(rows(family, list).size == appended / 20)
      assert(copied < 13 * appended)
    }
  }

  private def agreesWithMap(backend: HashMapStateBackend, longestRow: Int, readOneIn: Int): Unit = {
    val r = new Random(11)
    var family = declared(backend)
    val model = mutable.Map[Seq[Byte], Seq[Seq[Byte]]]()
    val deltas = mutable.Buffer[StateSegment]()
    for (version <- 0L until 30L) {
      backend.openForWrite(version)
      val before = model.toMap
      val snapshot = if (version % 3 == 1) backend.snapshotBase() else null
      for (_ <- 0 until 100) {
        val key = longs(r.nextInt(20))
        val row = randomBytes(r, 8 * (1 + r.nextInt(longestRow)))
        r.nextInt(if (longestRow > 4) 30 else 6) match {
          case 0 =>
            remove(family, key)
            model.remove(key.toSeq)
          case 1 =>
            val list = Seq.fill(1 + r.nextInt(4))(randomBytes(r, 8 * r.nextInt(3)))
            family.startList()
            list.foreach(x => family.addToList(x, Start, x.length))
            if (r.nextBoolean()) {
              family.putList(key, Start, 8)
              model(key.toSeq) = list.map(_.toSeq)
            } else {
              family.appendList(key, Start, 8)
              model(key.toSeq) = model.getOrElse(key.toSeq, Nil) ++ list.map(_.toSeq)
            }
          case _ =>
            family.append(key, Start, 8, row, Start, row.length)
            model(key.toSeq) = model.getOrElse(key.toSeq, Nil) :+ row.toSeq
        }
        if (r.nextInt(readOneIn) == 0) assert(rows(family, key) == model.getOrElse(key.toSeq, Nil))
      }
      backend.commit()
      deltas += segment(isBase = false, backend.deltaBytes())
      assert(backend.deltaBytes().bytes.length <= backend.deltaSize)
      if (snapshot != null) {
        // Lists grow in place where there is room, but not those that a snapshot has.
        backend.fold()
        val restored = newBackend(K)
        restored.restore(version, 0, Seq(segment(isBase = true, snapshot.toBytes())), everything)
        snapshot.close()
        declared(restored)
        for (i <- 0 until 20) {
          assert(rows(restored.reader("default", version), longs(i)) == before.getOrElse(longs(i).toSeq, Nil))
        }
      }
      for (i <- 0 until 20) {
        assert(rows(backend.reader("default", version + 1), longs(i)) == model.getOrElse(longs(i).toSeq, Nil))
      }
    }
    for (i <- 0 until 20) assert(rows(family, longs(i)) == model.getOrElse(longs(i).toSeq, Nil))
    val other = newBackend(K)
    other.restore(30, 0, deltas.toSeq, everything)
    family = declared(other)
    for (i <- 0 until 20) assert(rows(family, longs(i)) == model.getOrElse(longs(i).toSeq, Nil))
  }

  test("a list that is being read does not change under appends and puts to its key") {
    val backend = newBackend(K)
    val family = declared(backend)
    val key = longs(1)
    for (version <- 0L until 3L) {
      backend.openForWrite(version)
      for (n <- 0 until 50) {
        family.append(key, Start, 8, longs(version, n), Start, 16)
        val before = rows(family, key)
        assert(family.get(key, Start, 8))
        val c = new ListCursor().reset(family.valueBase, family.valueOffset, family.valueLength)
        // Another get, appends and a put: the cursor may live longer than the next get.
        family.append(key, Start, 8, longs(0, 0), Start, 16)
        assert(rows(family, key).size == before.size + 1)
        family.append(key, Start, 8, longs(0, 1), Start, 16)
        if (n == 20) {
          family.startList()
          family.addToList(longs(8, 8), Start, 16)
          family.putList(key, Start, 8)
          remove(family, key)
        }
        assert(read(c) == before)
      }
      backend.commit()
    }
  }

  test("an iterator gives the lists as they were when it was made") {
    val backend = newBackend(K)
    val family = declared(backend)
    def append(key: Long, row: Long): Unit = family.append(longs(key), Start, 8, longs(row), Start, 8)
    def sizes(i: EntryIterator): Map[Long, Int] = {
      val all = mutable.Map[Long, Int]()
      while (i.advance()) {
        all(key(i).getLong) = read(new ListCursor().reset(i.valueBase, i.valueOffset, i.valueLength)).size
      }
      all.toMap
    }
    backend.openForWrite(0)
    for (i <- 0 until 10) append(1, i)
    backend.commit()
    backend.openForWrite(1)
    val made = (1 to 5).map { n =>
      append(1, n)
      append(2, n)
      append(10 + n, n)
      (n, family.iterator())
    }
    append(2, 0)
    remove(family, longs(1))
    made.reverse.foreach { case (n, i) =>
      assert(sizes(i) == (1 to n).map(k => (10L + k) -> 1).toMap + (1L -> (10 + n)) + (2L -> n))
    }
    assert(sizes(family.iterator())(2) == 6)
  }

  test("a list that is being read outlives the next get and a put of the same size") {
    val backend = newBackend(K)
    val family = declared(backend)
    backend.openForWrite(0)

    def putOne(key: Long, value: Long): Unit = {
      family.startList()
      family.addToList(longs(value), Start, 8)
      family.putList(longs(key), Start, 8)
    }

    putOne(1, 10)
    putOne(2, 20)
    assert(family.get(longs(1), Start, 8))
    val c = new ListCursor().reset(family.valueBase, family.valueOffset, family.valueLength)
    assert(rows(family, longs(2)) == Seq(longs(20).toSeq))
    for (i <- 0 until 5) putOne(1, 100 + i)
    assert(read(c) == Seq(longs(10).toSeq))
    assert(rows(family, longs(1)) == Seq(longs(104).toSeq))
  }

  test("appending many rows to one key copies and keeps few of them") {
    val backend = newBackend(K)
    val family = declared(backend)
    backend.openForWrite(0)
    for (i <- 0 until 50000) family.append(longs(1), Start, 8, longs(i), Start, 8)
    assert(rows(family, longs(1)).size == 50000)
    assert(backend.memoryBytes < 50000 * 12 * 20)
    assert(family.rowCount == 1)
  }

  /** A list of this many rows under key 1, as version 1. */
  private def withList(length: Int): HashMapStateBackend = {
    val backend = newBackend(K)
    val family = declared(backend)
    backend.openForWrite(0)
    for (i <- 0 until length) family.append(longs(1), Start, 8, longs(i), Start, 8)
    backend.commit()
    backend
  }

  // A list on the local disk is read and written whole.
  if (tier == null) test("appending to a long list takes memory for what is appended, until the list is read") {
    val backend = withList(100000)
    backend.openForWrite(1)
    val family = backend.table("default")
    def append(i: Int): Unit = family.append(longs(1), Start, 8, longs(i), Start, 8)
    val before = backend.memoryBytes
    append(100000)
    assert(backend.memoryBytes - before < 4096)
    for (i <- 100001 until 101000) append(i)
    assert(family.contains(longs(1), Start, 8))
    assert(backend.memoryBytes - before < 1000 * 12 * 8)
    backend.commit()
    assert(backend.deltaBytes().bytes.length < 1000 * 12 + 200)
    assert(rows(family, longs(1)) == (0 until 101000).map(i => longs(i).toSeq))
    assert(backend.deltaBytes().bytes.length < 1000 * 12 + 200)
    backend.fold()
    assert(rows(backend.reader("default", 2), longs(1)) == (0 until 101000).map(i => longs(i).toSeq))
  }

  // A list on the local disk is read and written whole.
  if (tier == null) test("a long list that grows in each batch is not copied in each batch") {
    val threads = ManagementFactory.getThreadMXBean.asInstanceOf[com.sun.management.ThreadMXBean]
    val length = 200000
    val backend = withList(length)
    backend.fold()
    val before = threads.getCurrentThreadAllocatedBytes
    for (version <- 1 to 300) {
      backend.openForWrite(version)
      backend.table("default").append(longs(1), Start, 8, longs(length + version - 1), Start, 8)
      backend.commit()
      backend.fold()
    }
    // Each batch allocates a little of its own.
    assert(threads.getCurrentThreadAllocatedBytes - before < 3L * length * 12 + 300L * 16384)
    val found = rows(backend.reader("default", 301), longs(1))
    assert(found == (0 until length + 300).map(i => longs(i).toSeq))
  }

  test("the delta of an append grows with what is appended, and the base has the whole list") {
    val backend = withList(1000)
    val first = backend.deltaBytes()
    backend.openForWrite(1)
    for (i <- 1000 until 1003) backend.table("default").append(longs(1), Start, 8, longs(i), Start, 8)
    backend.commit()
    val second = backend.deltaBytes()
    assert(first.bytes.length > 12000 && second.bytes.length < 200)
    assert(backend.deltaSize >= second.bytes.length && backend.deltaSize < 300)
    backend.fold()
    val restored = newBackend(K)
    for (segments <- Seq(
        Seq(segment(isBase = false, first), segment(isBase = false, second)),
        Seq(segment(isBase = true, base(backend))))) {
      restored.restore(2, 0, segments, everything)
      declared(restored)
      assert(rows(restored.reader("default", 2), longs(1)) == (0 until 1003).map(i => longs(i).toSeq))
    }
  }

  test("an append that is undone, and a list that is put after appends, leave no trace of them") {
    val backend = withList(3)
    val first = backend.deltaBytes()
    backend.openForWrite(1)
    backend.table("default").append(longs(1), Start, 8, longs(7), Start, 8)
    backend.commit()
    backend.undoCommit()
    assert(rows(backend.reader("default", 1), longs(1)).size == 3)
    backend.openForWrite(1)
    val family = backend.table("default")
    family.append(longs(1), Start, 8, longs(8), Start, 8)
    remove(family, longs(1))
    family.append(longs(1), Start, 8, longs(9), Start, 8)
    backend.commit()
    val restored = newBackend(K)
    restored.restore(
      2, 0, Seq(segment(isBase = false, first), segment(isBase = false, backend.deltaBytes())), everything)
    declared(restored)
    assert(rows(restored.reader("default", 2), longs(1)) == Seq(longs(9).toSeq))
  }
}
