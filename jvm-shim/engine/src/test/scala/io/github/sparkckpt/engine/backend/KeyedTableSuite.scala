// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

import java.nio.ByteBuffer
import java.util.Arrays

import scala.collection.mutable
import scala.util.Random

import io.github.sparkckpt.engine.support.{BackendTesting, ByteOrder, FirstWordPrefix}
import io.github.sparkckpt.engine.table.{KeyAccess, KeyGroupFunction}
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.unsafe.Platform

/** Lifetime of a table's results, iterators while writing, lists, counts. */
class KeyedTableSuite extends AnyFunSuite with BackendTesting {
  private val K = 16

  private def opened(
      groups: KeyGroupFunction = groupsByHash(K),
      access: KeyAccess = KeyAccess.Point): (HashMapStateBackend, HashMapTable) = {
    val b = newBackend(K)
    val f = b.declareFamily("default", groups, access)
    b.openForWrite(0)
    (b, f)
  }

  private def nextBatch(b: HashMapStateBackend): Unit = {
    b.commit()
    b.openForWrite(b.version)
  }

  test("what get returned stays as it is while the same and other keys are put and removed") {
    val (b, f) = opened()
    put(f, longs(1), longs(10))
    // Once from the buffer, once from the table.
    for (_ <- 0 until 2) {
      for (n <- 1 to 100) {
        assert(f.get(longs(1), Start, 8))
        val (base, offset, length) = (f.valueBase, f.valueOffset, f.valueLength)
        val held = bytes(base, offset, length)
        for (i <- 1 to 5) {
          put(f, longs(1), longs(n * 10 + i))
          put(f, longs(2), longs(n))
          if (i == 3) remove(f, longs(1))
          assert(Arrays.equals(bytes(base, offset, length), held))
        }
        assert(f.contains(longs(1), Start, 8) && !f.contains(longs(99), Start, 8))
        assert(f.valueBase eq base)
      }
      nextBatch(b)
    }
  }

  test("a value can be put from where get or an iterator found it") {
    val (_, f) = opened()
    put(f, longs(1), longs(5, 6))
    for (_ <- 0 until 5) {
      assert(f.get(longs(1), Start, 8))
      f.put(longs(2), Start, 8, f.valueBase, f.valueOffset, f.valueLength)
      f.put(longs(1), Start, 8, f.valueBase, f.valueOffset, f.valueLength)
      val i = f.iterator()
      while (i.advance()) {
        f.put(i.keyBase, i.keyOffset, i.keyLength, i.valueBase, i.valueOffset, i.valueLength)
      }
    }
    assert(Arrays.equals(get(f, longs(1)), longs(5, 6)))
    assert(Arrays.equals(get(f, longs(2)), longs(5, 6)))
  }

  test("a key that is read and put again and again takes no more memory") {
    val (b, f) = opened()
    put(f, longs(1), longs(0))
    put(f, longs(2), longs(0))
    val before = b.memoryBytes
    for (n <- 1 to 100000) {
      val count = ByteBuffer.wrap(get(f, longs(1))).getLong
      assert(count == n - 1)
      put(f, longs(1), longs(count + 1))
      remove(f, longs(2))
      put(f, longs(2), longs(n))
    }
    assert(b.memoryBytes <= before + 4096)
  }

  test("an iterator ends although each step puts a new key, and gives what was there") {
    for (access <- Seq(KeyAccess.Point, new FirstWordPrefix, new ByteOrder)) {
      val (b, f) = opened(groupsByHash(K), access)
      for (i <- 0 until 20) put(f, longs(7, i), longs(i))
      nextBatch(b)
      for (i <- 20 until 40) put(f, longs(7, i), longs(i))
      val scans = access match {
        case KeyAccess.Point => Seq(() => f.iterator())
        case _ => Seq(() => f.iterator(), () => f.prefixScan(longs(7), Start, 8))
      }
      var next = 1000L
      scans.foreach { scan =>
        val i = scan()
        var n = 0
        while (i.advance()) {
          n += 1
          put(f, longs(7, next), longs(0))
          next += 1
        }
        assert(n == f.rowCount - n)
        drain(f.iterator()).keySet.forEach(k => if (k.getLong(8) >= 40) remove(f, k.array))
        assert(f.rowCount == 40)
      }
    }
  }

  test("a key that is removed and put again while iterating is neither lost nor given twice") {
    for (access <- Seq(KeyAccess.Point, new FirstWordPrefix, new ByteOrder)) {
      val (b, f) = opened(groupsByHash(K), access)
      for (i <- 0 until 50) put(f, longs(1, i), longs(i))
      nextBatch(b)
      for (i <- 50 until 100) put(f, longs(1, i), longs(i))
      val i = if (access == KeyAccess.Point) f.iterator() else f.prefixScan(longs(1), Start, 8)
      val seen = mutable.Set[Long]()
      val r = new Random(3)
      while (i.advance()) {
        assert(seen.add(key(i).getLong(8)))
        for (_ <- 0 until 10) {
          val k = longs(1, r.nextInt(100))
          remove(f, k)
          put(f, k, randomBytes(r, 8 * r.nextInt(5)))
        }
      }
      assert(seen.size == 100 && f.rowCount == 100)
    }
  }

  test("what an iterator points at stays while its key is put") {
    val (b, f) = opened()
    for (i <- 0 until 10) put(f, longs(i), longs(i))
    nextBatch(b)
    for (i <- 5 until 15) put(f, longs(i), longs(i))
    val i = f.iterator()
    while (i.advance()) {
      val held = value(i)
      for (n <- 1 to 4) put(f, key(i).array, longs(1000 + n))
      assert(value(i) == held)
    }
    for (i <- 0 until 15) assert(Arrays.equals(get(f, longs(i)), longs(1004)))
  }

  test("each iterator gives what was there when it was made") {
    for (access <- Seq(KeyAccess.Point, new FirstWordPrefix, new ByteOrder)) {
      val (b, f) = opened(groupsByHash(K), access)
      put(f, longs(1), longs(10))
      put(f, longs(2), longs(20))
      nextBatch(b)
      val all = Seq(
        () => (),
        () => put(f, longs(1), longs(11)),
        () => put(f, longs(3), longs(30)),
        () => remove(f, longs(2)),
        () => put(f, longs(1), longs(12, 0)),
        () => remove(f, longs(3)),
        () => put(f, longs(2), longs(21)),
        () => put(f, longs(3), longs(31)))
      val made = all.map { change =>
        change()
        (contents(f), f.iterator())
      }
      remove(f, longs(1))
      put(f, longs(4), longs(40))
      assert(made.map(_._1.size) == Seq(2, 2, 3, 2, 2, 1, 2, 3))
      new Random(5).shuffle(made).foreach { case (then, i) => assertSame(drain(i), then) }
      assert(contents(f).keySet.size == 3)
    }
  }

  test("an iterator over many pages finds each change, of long records too, and none that came after it") {
    val (b, f) = opened()
    val r = new Random(7)
    // Records above 8 KiB have pages of their own, and come last in a walk.
    def valueOf(n: Long): Array[Byte] = randomBytes(r, if (n % 50 == 0) 9000 else 40 + 8 * (n % 5).toInt)
    val expected = new Model
    def set(n: Long): Unit = {
      val value = valueOf(n)
      put(f, longs(n), value)
      expected.put(ByteBuffer.wrap(longs(n)), ByteBuffer.wrap(value))
    }
    for (n <- 0L until 20000L) set(n)
    nextBatch(b)
    for (n <- r.shuffle((0L until 20000L by 7).toVector)) {
      if (n % 3 == 0) {
        remove(f, longs(n))
        expected.remove(ByteBuffer.wrap(longs(n)))
      } else {
        set(n)
      }
    }
    for (n <- 30000L until 31000L) set(n)
    assertSame(contents(f), expected)
    val atOpening = copyOf(expected)
    val i = f.iterator()
    val found = new Model
    while (i.advance()) {
      found.put(key(i), value(i))
      val n = r.nextInt(40000).toLong
      if (n % 2 == 0) set(n) else if (remove(f, longs(n))) expected.remove(ByteBuffer.wrap(longs(n)))
    }
    assertSame(found, atOpening)
    assertSame(contents(f), expected)
    nextBatch(b)
    assertSame(contents(f), expected)
  }

  test("a batch keeps what it replaces for as long as an iterator is to give it") {
    val (b, f) = opened()
    for (i <- 0 until 100) put(f, longs(i), longs(i))

    def grown(rounds: Int): Long = {
      val before = b.memoryBytes
      for (n <- 1 to rounds; i <- 0 until 100) put(f, longs(i), longs(n))
      b.memoryBytes - before
    }

    grown(1)
    val closed = f.iterator()
    val ended = f.iterator()
    val open = f.iterator()
    closed.close()
    while (ended.advance()) {}
    val once = grown(1)
    assert(once > 0 && grown(1000) <= once)
    open.close()
    open.close()
    assert(!open.advance() && grown(1000) <= once)
    val before = b.memoryBytes
    for (_ <- 0 until 100) {
      f.iterator().close()
      grown(1)
    }
    assert(b.memoryBytes - before <= once)
  }

  test("what an iterator gave last stays as it is after its end") {
    val (_, f) = opened()
    put(f, longs(1), longs(10))
    val i = f.iterator()
    assert(i.advance())
    val held = value(i)
    assert(!i.advance())
    for (n <- 1 to 4) put(f, longs(1), longs(n))
    assert(value(i) == held)
  }

  test("iterators and writes after the end of the batch are errors") {
    val (b, f) = opened()
    put(f, longs(1), longs(1))
    val first = f.iterator()
    b.commit()
    assert(first.advance())
    intercept[IllegalStateException](put(f, longs(1), longs(2)))
    intercept[IllegalStateException](remove(f, longs(1)))
    b.fold()
    intercept[IllegalStateException](first.advance())
    b.openForWrite(1)
    val second = f.iterator()
    b.discard()
    intercept[IllegalStateException](second.advance())
    intercept[IllegalStateException](put(f, longs(1), longs(2)))
  }

  test("counts of new, updated and removed keys") {
    val (b, f) = opened()

    def check(rows: Long, updated: Long, removed: Long): Unit =
      assert((b.rowCount, b.rowsUpdated, b.rowsRemoved) == ((rows, updated, removed)))

    for (i <- 0 until 5) put(f, longs(i), longs(i))
    check(5, 5, 0)
    nextBatch(b)
    check(5, 0, 0)
    put(f, longs(0), longs(1))
    put(f, longs(0), longs(2))
    check(5, 1, 0)
    assert(remove(f, longs(0)))
    assert(!remove(f, longs(0)))
    assert(remove(f, longs(1)))
    assert(!remove(f, longs(77)))
    check(3, 0, 2)
    put(f, longs(1), longs(9))
    put(f, longs(50), longs(9))
    check(5, 2, 1)
    remove(f, longs(50))
    check(4, 1, 1)
    b.discard()
    check(5, 0, 0)
  }

  test("the key group function is asked for new keys only, and its answer is checked") {
    var asked = 0
    val groups: KeyGroupFunction = (b: AnyRef, o: Long, _: Int) => {
      asked += 1
      Platform.getByte(b, o).toInt
    }
    val (b, f) = opened(groups)
    put(f, longs(1L << 56), longs(1))
    put(f, longs(1L << 56), longs(2))
    nextBatch(b)
    put(f, longs(1L << 56), longs(3))
    remove(f, longs(2L << 56))
    assert(asked == 1)
    assert(b.deltaBytes().info.keyGroups.toSeq == Seq(1))
    intercept[IllegalStateException](put(f, longs(16L << 56), longs(1)))
    intercept[IllegalStateException](put(f, longs(-1), longs(1)))
    assert(f.rowCount == 1)
  }

  test("keys whose length is no multiple of 8 are refused") {
    val (_, f) = opened()
    intercept[IllegalArgumentException](put(f, new Array[Byte](9), longs(1)))
    intercept[IllegalArgumentException](get(f, new Array[Byte](4)))
    intercept[UnsupportedOperationException](f.prefixScan(longs(1), Start, 8))
    intercept[UnsupportedOperationException](f.rangeScan(null, null))
    intercept[UnsupportedOperationException](f.startList())
  }

  test("very long keys and values") {
    val (b, f) = opened(groupsByHash(K), new FirstWordPrefix)
    val r = new Random(1)
    val keys = Seq(8, 16, 65534 * 8, 65535 * 8, 65536 * 8, 1 << 20).map(randomBytes(r, _))
    val values = keys.indices.map(i => randomBytes(r, 8 << (2 * i)))
    keys.zip(values).foreach { case (k, v) => put(f, k, v) }
    nextBatch(b)
    val other = newBackend(K)
    other.restore(1, 0, Seq(segment(isBase = true, base(b))), everything)
    for ((k, v) <- keys.zip(values)) {
      assert(Arrays.equals(get(f, k), v))
      assert(Arrays.equals(get(other.reader("default", 1), k), v))
    }
    keys.tail.foreach(k => remove(f, k))
    nextBatch(b)
    assert(drain(f.iterator()).size == 1)
    assert(f.table.pages.bytes < 100000)
  }

  test("a range can be removed") {
    val (b, f) = opened(groupsByHash(K), new ByteOrder)
    for (i <- 0 until 10) put(f, longs(i), longs(i))
    nextBatch(b)
    for (i <- 10 until 20) put(f, longs(i), longs(i))
    assert(f.removeRange(longs(5), longs(15)) == 10)
    assert(f.rowCount == 10 && f.get(longs(15), Start, 8) && !f.get(longs(5), Start, 8))
    assert(f.removeRange(null, null) == 10)
  }
}
