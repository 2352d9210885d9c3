// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.compaction

import java.io.ByteArrayOutputStream

import scala.collection.mutable
import scala.util.Random

import io.github.sparkckpt.engine.backend.HashMapStateBackend
import io.github.sparkckpt.engine.segment.{SegmentBytes, SegmentHeader, StateStreamDamagedException}
import io.github.sparkckpt.engine.support.{BackendTesting, ByteOrder, FirstWordPrefix}
import io.github.sparkckpt.engine.table.KeyAccess
import org.scalatest.funsuite.AnyFunSuite

class SegmentMergerSuite extends AnyFunSuite with BackendTesting {
  private val K = 16

  private val accesses = Seq[(String, () => KeyAccess)](
    "point" -> (() => KeyAccess.Point),
    "prefix" -> (() => new FirstWordPrefix),
    "ordered" -> (() => new ByteOrder))

  for ((name, access) <- accesses; logsWrites <- Seq(false, true); seed <- 1 to 4) {
    val deltas = if (logsWrites) "every write" else "the outcome"
    test(s"a chain with merged deltas loads as the chain itself: $name access, deltas with $deltas, seed $seed") {
      new History(new Random(seed), access, logsWrites).run(batches = 24)
    }
  }

  test("a removal stays, and a key that was removed and put again is there") {
    val b = new HashMapStateBackend(K)
    val f = b.declareFamily("default", groupsByHash(K))
    val first = batch(b)(Seq(1, 2, 3).foreach(k => put(f, longs(k), longs(k))))
    val second = batch(b)(Seq(1, 2).foreach(k => remove(f, longs(k))))
    val third = batch(b)(put(f, longs(2), longs(22)))
    val merged = merge(Seq(second, third), 3)
    assert(merged.info.entries == 2)
    val loaded = restored(3, Seq(first, merged))
    assertSame(contents(loaded.reader("default", 3)), contents(b.reader("default", 3)))
    assert(loaded.reader("default", 3).rowCount == 2)
  }

  test("a merged delta has each key once, and less than its parts") {
    val b = new HashMapStateBackend(K)
    val f = b.declareFamily("default", groupsByHash(K))
    val parts = (0 until 5).map(n => batch(b)((0 until 100).foreach(k => put(f, longs(k), longs(n, k)))))
    val merged = merge(parts, 5)
    assert(merged.info.entries == 100 && merged.bytes.length == parts.head.bytes.length)
    assert(merged.info.keyGroups.toSeq == parts.head.info.keyGroups.toSeq)
    val delta = segment(isBase = false, merged)
    assert(SegmentHeader.of(delta.source, delta.offsets(0)) == SegmentHeader(isBase = false, 5))
  }

  test("a family with lists in one delta and single values in another is not merged") {
    val b = new HashMapStateBackend(K)
    val single = b.declareFamily("a", groupsByHash(K))
    val first = batch(b)(put(single, longs(1), longs(1)))
    b.openForWrite(b.version)
    b.dropFamily("a")
    b.commit()
    val second = b.deltaBytes()
    b.openForWrite(b.version)
    val lists = b.declareFamily("a", groupsByHash(K), multiValue = true)
    val row = longs(5)
    lists.appendList(longs(1), Start, 8)
    lists.append(longs(1), Start, 8, row, Start, row.length)
    b.commit()
    val third = b.deltaBytes()
    assert(merge(Seq(first, second), 2).info.entries == 1)
    assert(intercept[DeltasNotMergeableException](merge(Seq(first, second, third), 3)).getMessage.contains("'a'"))
  }

  test("a merge that is no longer needed stops between key groups") {
    val b = new HashMapStateBackend(K)
    val f = b.declareFamily("default", groupsByHash(K))
    val parts = (0 until 2).map(_ => batch(b)((0 until 100).foreach(k => put(f, longs(k), longs(k)))))
    var asked = 0
    val stop = () => {
      asked += 1
      if (asked == 3) throw new NoLongerNeededException
    }
    val out = new ByteArrayOutputStream
    intercept[NoLongerNeededException](new SegmentMerger().merge(parts.map(input), 2, out, stop))
    assert(asked == 3)
  }

  test("a damaged block, or one of another key group, fails the merge") {
    val b = new HashMapStateBackend(K)
    val f = b.declareFamily("default", groupsByHash(K))
    val parts = (0 until 2).map(_ => batch(b)((0 until 100).foreach(k => put(f, longs(k), longs(k)))))
    val damaged = SegmentBytes(parts(1).info, parts(1).bytes.clone())
    damaged.bytes(damaged.bytes.length - 1) = (damaged.bytes.last ^ 1).toByte
    intercept[StateStreamDamagedException](merge(Seq(parts(0), damaged), 2))
    val shifted = input(parts(1)).copy(keyGroups = parts(1).info.keyGroups.map(_ + 1))
    intercept[StateStreamDamagedException](
      new SegmentMerger().merge(Seq(input(parts(0)), shifted), 2, new ByteArrayOutputStream, () => ()))
    intercept[StateStreamDamagedException](merge(parts, 1))
  }

  private def batch(b: HashMapStateBackend)(changes: => Unit): SegmentBytes = {
    b.openForWrite(b.version)
    changes
    b.commit()
    b.deltaBytes()
  }

  private def input(delta: SegmentBytes) = MergeInput(delta.info.keyGroups, segment(isBase = false, delta))

  /** Merges with windows of a few blocks. */
  private def merge(deltas: Seq[SegmentBytes], version: Long): SegmentBytes = {
    val out = new ByteArrayOutputStream
    val info = new SegmentMerger(window = 500).merge(deltas.map(input), version, out, () => ())
    assert(info.bytes == out.size())
    SegmentBytes(info, out.toByteArray)
  }

  private def restored(version: Long, deltas: Seq[SegmentBytes]): HashMapStateBackend = {
    val b = new HashMapStateBackend(K)
    b.restore(version, 0, deltas.map(segment(isBase = false, _)), everything)
    b
  }

  /** A random history of some families; one of them is dropped and made again now and then. */
  private final class History(r: Random, access: () => KeyAccess, logsWrites: Boolean) {
    private val reached = Map("default" -> access(), "list" -> access(), "gone" -> access())
    private val backend = new HashMapStateBackend(K, logsWrites)
    private val keys = Array.fill(60)(randomBytes(r, 8 * (1 + r.nextInt(4))))
    private val deltas = mutable.ArrayBuffer.empty[SegmentBytes]
    private var start: SegmentBytes = _

    private def declare(b: HashMapStateBackend, name: String) =
      b.declareFamily(name, groupsByHash(K), reached(name), multiValue = name == "list")

    def run(batches: Int): Unit = {
      reached.keys.foreach(declare(backend, _))
      commit()
      backend.fold()
      start = base(backend)
      deltas.clear()
      (1 until batches).foreach(_ => commit())
      for (_ <- 0 until 10) check(merged(deltas.toSeq.zipWithIndex.map { case (delta, i) => (delta, i + 2L) }))
    }

    private def commit(): Unit = {
      backend.openForWrite(backend.version)
      for (_ <- 0 until r.nextInt(80)) change()
      if (r.nextInt(6) == 0) {
        backend.dropFamily("gone")
        if (r.nextBoolean()) declare(backend, "gone")
        for (_ <- 0 until r.nextInt(20)) change()
      } else if (backend.table("gone") == null) {
        declare(backend, "gone")
      }
      backend.commit()
      deltas += backend.deltaBytes()
    }

    private def change(): Unit = {
      val key = keys(r.nextInt(keys.length))
      val value = randomBytes(r, 8 * r.nextInt(4))
      val name = Seq("default", "list", "gone")(r.nextInt(3))
      val family = backend.table(name)
      if (family != null) {
        if (r.nextInt(4) == 0) remove(family, key)
        else if (name != "list") put(family, key, value)
        else if (r.nextInt(4) > 0 && family.get(key, Start, key.length)) {
          family.append(key, Start, key.length, value, Start, value.length)
        } else {
          family.appendList(key, Start, key.length)
          family.append(key, Start, key.length, value, Start, value.length)
        }
      }
    }

    /** The chain after some merges of random runs, merged ones included. */
    private def merged(chain: Seq[(SegmentBytes, Long)]): Seq[SegmentBytes] =
      (0 until 6).foldLeft(chain) { (rest, _) =>
        if (rest.size < 2) rest
        else {
          val first = r.nextInt(rest.size - 1)
          val until = first + 2 + r.nextInt(math.min(6, rest.size - first - 1))
          val run = rest.slice(first, until)
          val made = merge(run.map(_._1), run.last._2)
          assert(made.info.entries <= run.map(_._1.info.entries).sum)
          rest.take(first) ++ Seq((made, run.last._2)) ++ rest.drop(until)
        }
      }.map(_._1)

    private def check(chain: Seq[SegmentBytes]): Unit = {
      val version = backend.version
      val loaded = new HashMapStateBackend(K)
      loaded.restore(version, 0, segment(isBase = true, start) +: chain.map(segment(isBase = false, _)), everything)
      reached.keys.foreach { name =>
        assertSame(contents(loaded.reader(name, version)), contents(backend.reader(name, version)), name)
      }
    }
  }
}
