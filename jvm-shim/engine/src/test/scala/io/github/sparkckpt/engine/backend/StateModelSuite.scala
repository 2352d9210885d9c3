// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

import java.nio.ByteBuffer
import java.util.TreeMap

import scala.collection.mutable
import scala.util.Random

import io.github.sparkckpt.engine.compaction.BaseSnapshot
import io.github.sparkckpt.engine.segment.SegmentBytes
import io.github.sparkckpt.engine.support.{BackendTesting, ByteOrder, FirstWordPrefix}
import io.github.sparkckpt.engine.table.KeyAccess
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.unsafe.Platform

/** Random histories, compared with a map per version after each step. */
class StateModelSuite extends AnyFunSuite with BackendTesting {
  private val K = 64

  private val accesses = Seq[(String, () => KeyAccess)](
    "point" -> (() => KeyAccess.Point),
    "prefix" -> (() => new FirstWordPrefix),
    "ordered" -> (() => new ByteOrder))

  for ((name, access) <- accesses; seed <- 1 to 6) {
    test(s"a random history of a $name family agrees with a map, seed $seed") {
      new History(new Random(seed), access, steps = 60, logsWrites = false).run()
    }
  }

  for ((name, access) <- accesses) {
    test(s"a random history of a $name family agrees with a map if deltas have every write") {
      new History(new Random(7), access, steps = 60, logsWrites = true).run()
    }
  }

  /** History of a backend, as the model knows it. */
  private class History(r: Random, access: () => KeyAccess, steps: Int, logsWrites: Boolean) {
    private val reached = access()
    private def declare(backend: HashMapStateBackend) = backend.declareFamily("default", groupsByHash(K), reached)
    private var backend = newBackend(K, logsWrites)
    declare(backend)
    private val versions = mutable.Map[Long, Model](0L -> new Model)
    private val deltas = mutable.Map[Long, SegmentBytes]()
    private val bases = mutable.Map[Long, SegmentBytes](0L -> base(backend))
    private val snapshots = mutable.Buffer[BaseSnapshot]()
    private val keys = Array.fill(400)(newKey())
    private val scans = mutable.Buffer[Scan]()

    private def family: HashMapTable = backend.table("default")

    private def newKey(): Array[Byte] = {
      // Few prefixes, some long keys; no empty key where a prefix is needed.
      val words = if (r.nextInt(50) == 0) 1 + r.nextInt(2000) else 1 + r.nextInt(4)
      val k = randomBytes(r, words * 8)
      Platform.putLong(k, Start, r.nextInt(12))
      if (access() == KeyAccess.Point && r.nextInt(100) == 0) new Array[Byte](0) else k
    }

    private def newValue(): Array[Byte] = r.nextInt(40) match {
      case 0 => randomBytes(r, 40000 + r.nextInt(1000) * 8)
      case 1 => new Array[Byte](0)
      case 2 => randomBytes(r, 8 * r.nextInt(300))
      case x if x < 12 => randomBytes(r, 8 * r.nextInt(6))
      case _ => randomBytes(r, 16)
    }

    def run(): Unit = {
      var version = 0L
      for (_ <- 0 until steps) {
        version = step(version)
        if (r.nextInt(5) == 0) snapshots += backend.snapshotBase()
        if (snapshots.nonEmpty && r.nextInt(4) == 0) {
          checkSnapshot(snapshots.remove(r.nextInt(snapshots.size)))
        }
      }
      snapshots.foreach(checkSnapshot)
    }

    private def checkSnapshot(s: BaseSnapshot): Unit = {
      assert(s.rows == versions(s.version).size)
      val written = s.toBytes()
      s.close()
      bases(s.version) = written
      val other = newBackend(K)
      other.restore(s.version, s.rows, Seq(segment(isBase = true, written)), everything)
      assertSame(contents(other.reader("default", s.version)), versions(s.version))
    }

    private def step(version: Long): Long = {
      val model = copyOf(versions(version))
      backend.openForWrite(version)
      assertSame(contents(family), model)
      for (_ <- 0 until r.nextInt(200)) change(model)
      assert(family.rowCount == model.size)
      assertSame(contents(family), model)
      checkScans(model)
      scans.foreach(_.finish())
      scans.clear()
      if (r.nextInt(4) == 0) {
        backend.discard()
        assertSame(contents(backend.reader("default", version)), versions(version))
        version
      } else {
        finish(version, model)
      }
    }

    private def finish(version: Long, model: Model): Long = {
      assert(backend.commit() == version + 1)
      deltas(version + 1) = backend.deltaBytes()
      assert(deltas(version + 1).bytes.length <= backend.deltaSize)
      versions(version + 1) = model
      bases.remove(version + 1)
      assertSame(contents(backend.reader("default", version + 1)), model)
      assertSame(contents(backend.reader("default", version)), versions(version))
      r.nextInt(6) match {
        case 0 =>
          assert(backend.undoCommit())
          version
        case 1 => version
        case 2 =>
          restore(version + 1)
          version + 1
        case 3 =>
          backend.fold()
          version + 1
        case _ => version + 1
      }
    }

    private def change(model: Model): Unit = {
      val k = keys(r.nextInt(keys.length))
      val wrapped = ByteBuffer.wrap(k)
      r.nextInt(10) match {
        case 0 | 1 => assert(remove(family, k) == (model.remove(wrapped) != null))
        case 2 | 3 =>
          val expected = model.get(wrapped)
          val found = get(family, k)
          assert(if (expected == null) found == null else found != null && ByteBuffer.wrap(found) == expected)
        case 4 if r.nextInt(20) == 0 => evict(model)
        case 4 => goOnWithScans(model)
        case _ =>
          val v = newValue()
          put(family, k, v)
          model.put(wrapped, ByteBuffer.wrap(v))
      }
    }

    /** Opens an iterator, goes some steps with one that is open, or closes one. */
    private def goOnWithScans(model: Model): Unit = {
      if (scans.size < 8) scans += new Scan(model)
      val scan = scans(r.nextInt(scans.size))
      for (_ <- 0 until r.nextInt(30)) scan.step()
      if (r.nextInt(4) == 0) {
        scan.entries.close()
        assert(!scan.entries.advance())
        scans -= scan
      }
    }

    /** An iterator among the changes of a batch: it gives the entries present at its creation. */
    private class Scan(model: Model) {
      private val prefix = longs(0)
      Platform.putLong(prefix, Start, r.nextInt(12))
      private val byPrefix = access() != KeyAccess.Point && r.nextBoolean()
      val entries: EntryIterator =
        if (byPrefix) family.prefixScan(prefix, Start, 8) else family.iterator()
      private val expected = copyOf(model)
      if (byPrefix) expected.keySet.removeIf(k => Platform.getLong(k.array, Start) != Platform.getLong(prefix, Start))

      def step(): Boolean = {
        val more = entries.advance()
        if (more) assert(expected.remove(key(entries)) == value(entries))
        more
      }

      def finish(): Unit = {
        while (step()) {}
        assert(expected.isEmpty)
      }
    }

    /** Removes and puts while iterating. */
    private def evict(model: Model): Unit = {
      val seen = new java.util.HashSet[ByteBuffer]
      val before = copyOf(model)
      val i = family.iterator()
      while (i.advance()) {
        val k = key(i)
        assert(seen.add(k))
        assert(value(i) == before.get(k))
        r.nextInt(4) match {
          case 0 =>
            remove(family, k.array)
            model.remove(k)
          case 1 =>
            val v = newValue()
            put(family, k.array, v)
            model.put(k, ByteBuffer.wrap(v))
          case 2 =>
            val other = keys(r.nextInt(keys.length))
            val v = newValue()
            put(family, other, v)
            model.put(ByteBuffer.wrap(other), ByteBuffer.wrap(v))
          case _ =>
        }
      }
      before.keySet.forEach(k => assert(seen.contains(k)))
    }

    private def checkScans(model: Model): Unit = access() match {
      case _: KeyAccess.Prefix =>
        for (p <- 0 until 13) {
          val prefix = new Array[Byte](8)
          Platform.putLong(prefix, Start, p)
          val expected = copyOf(model)
          expected.keySet.removeIf(k => Platform.getLong(k.array, Start) != p)
          assertSame(drain(family.prefixScan(prefix, Start, 8)), expected)
        }
      case _: KeyAccess.Ordered =>
        val sorted = new TreeMap[Array[Byte], ByteBuffer](java.util.Arrays.compareUnsigned(_: Array[Byte], _))
        model.forEach((k, v) => sorted.put(k.array, v))
        val Seq(from, until) = Seq.fill(2)(keys(r.nextInt(keys.length))).sortWith(
          java.util.Arrays.compareUnsigned(_, _) < 0)
        checkOrder(family.rangeScan(null, null), sorted)
        checkOrder(family.rangeScan(from, null), sorted.tailMap(from))
        checkOrder(family.rangeScan(from, until), sorted.subMap(from, until))
        val prefix = java.util.Arrays.copyOf(from, 1 + r.nextInt(8))
        val expected = new java.util.TreeMap(sorted)
        expected.keySet.removeIf(k => !k.startsWith(prefix))
        checkOrder(family.prefixScan(prefix, Start, prefix.length), expected)
      case KeyAccess.Point =>
    }

    private def checkOrder(i: EntryIterator, expected: java.util.SortedMap[Array[Byte], ByteBuffer]): Unit = {
      expected.forEach { (k, v) =>
        assert(i.advance())
        assert(key(i) == ByteBuffer.wrap(k))
        assert(value(i) == v)
      }
      assert(!i.advance())
    }

    private def restore(version: Long): Unit = {
      val from = bases.keys.filter(_ <= version).max
      val chain = segment(isBase = true, bases(from)) +:
        (from + 1 to version).map(v => segment(isBase = false, deltas(v)))
      if (r.nextBoolean()) {
        backend = newBackend(K, logsWrites)
        if (r.nextBoolean()) declare(backend)
      }
      backend.restore(version, r.nextInt(500), chain, everything)
      declare(backend)
      assert(backend.version == version)
      assertSame(contents(family), versions(version))
    }
  }
}
