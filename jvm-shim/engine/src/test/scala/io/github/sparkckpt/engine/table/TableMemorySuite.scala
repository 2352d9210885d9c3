// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.table

import java.nio.ByteBuffer

import scala.util.Random

import io.github.sparkckpt.engine.backend.HashMapTable
import io.github.sparkckpt.engine.support.{BackendTesting, ByteOrder, FirstWordPrefix}
import org.scalatest.funsuite.AnyFunSuite

/** Memory stays within bounds, and a compacted table is the same table. */
class TableMemorySuite extends AnyFunSuite with BackendTesting {
  private val K = 16

  private class Store(access: KeyAccess = KeyAccess.Point) {
    val backend = newBackend(K)
    val family: HashMapTable = backend.declareFamily("default", groupsByHash(K), access)
    val model = new Model

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

    def keys: Array[Array[Byte]] = model.keySet.toArray(Array[ByteBuffer]()).map(_.array)

    def check(): Unit = {
      assertSame(contents(family), model)
      model.forEach((k, v) => assert(ByteBuffer.wrap(get(family, k.array)) == v))
    }
  }

  test("entries of 32 bytes take at most twice their size") {
    for (n <- Seq(20000, 50000, 98304, 98305, 200000)) {
      val s = new Store
      s.batch(for (i <- 0 until n) put(s.family, longs(i, 0), longs(i, i)))
      assert(s.backend.memoryBytes <= 64L * n + 70000, s"$n entries")
    }
  }

  test("a tiny store takes little memory") {
    val s = new Store
    s.batch(put(s.family, longs(1), longs(1)))
    assert(s.backend.memoryBytes < 4096)
  }

  test("keys that come and go leave no growing table") {
    val s = new Store
    var next = 0L
    s.batch(while (next < 20000) {
      put(s.family, longs(next), longs(next, 1))
      next += 1
    })
    val full = s.backend.memoryBytes
    for (_ <- 0 until 50) {
      s.batch(for (_ <- 0 until 4000) {
        put(s.family, longs(next), longs(next, 1))
        remove(s.family, longs(next - 20000))
        next += 1
      })
    }
    assert(s.backend.rowCount == 20000)
    assert(s.backend.memoryBytes < full * 1.3)
  }

  for (access <- Seq(() => KeyAccess.Point, () => new FirstWordPrefix, () => new ByteOrder)) {
    test(s"values of changing sizes are compacted and stay the same, ${access().id}") {
      val r = new Random(5)
      val s = new Store(access())
      var worst = 0L
      for (b <- 0 until 60) {
        val snapshot = if (b % 7 == 3) s.backend.snapshotBase() else null
        s.batch(for (_ <- 0 until 1500) {
          s.set(longs(r.nextInt(40), r.nextInt(100)), randomBytes(r, 8 * r.nextInt(60)))
        })
        if (snapshot != null) snapshot.close()
        if (b >= 20) worst = math.max(worst, s.family.table.pages.bytes)
      }
      s.check()
      assert(worst < s.family.table.rawBytes * 1.6)
      val most = s.keys.filter(_ => r.nextInt(20) != 0)
      s.batch(most.foreach(s.unset))
      for (_ <- 0 until 30) s.batch(())
      s.check()
      assert(s.family.table.pages.bytes < s.family.table.rawBytes * 2.5 + 70000)
      s.batch(s.keys.foreach(s.unset))
      s.check()
    }
  }

  for (access <- Seq(() => KeyAccess.Point, () => new FirstWordPrefix, () => new ByteOrder)) {
    test(s"values of all sizes around that of a page of their own stay the same, ${access().id}") {
      val r = new Random(8)
      val s = new Store(access())
      for (b <- 0 until 25) {
        val before = copyOf(s.model)
        val snapshot = if (b % 4 == 1) s.backend.snapshotBase() else null
        s.batch(for (_ <- 0 until 40) {
          val key = longs(r.nextInt(5), r.nextInt(20))
          r.nextInt(6) match {
            case 0 => s.unset(key)
            case 1 => s.set(key, randomBytes(r, 8 * r.nextInt(20)))
            case 2 => s.set(key, randomBytes(r, 300000 + 8 * r.nextInt(1000)))
            case _ => s.set(key, randomBytes(r, 8 * 1000 + r.nextInt(400)))
          }
        })
        s.check()
        if (snapshot != null) {
          val written = snapshot.toBytes()
          snapshot.close()
          val other = newBackend(K)
          other.restore(b, 0, Seq(segment(isBase = true, written)), everything)
          assertSame(contents(other.reader("default", b)), before)
        }
      }
      s.batch(s.keys.foreach(s.unset))
      s.check()
      assert(s.family.table.pages.bytes < 2000000, "pages of large records are given back at once")
    }
  }

  test("places of removed records in pages that a snapshot has are used again without harm") {
    val s = new Store
    s.batch(for (i <- 0 until 1000) s.set(longs(i), longs(i)))
    s.batch(for (i <- 0 until 500) s.unset(longs(i)))
    val before = copyOf(s.model)
    val snapshot = s.backend.snapshotBase()
    s.batch(for (i <- 5000 until 5500) s.set(longs(i), longs(i)))
    s.batch(for (i <- 600 until 700) s.set(longs(i), longs(-i)))
    val written = snapshot.toBytes()
    snapshot.close()
    val other = newBackend(K)
    other.restore(2, 0, Seq(segment(isBase = true, written)), everything)
    assertSame(contents(other.reader("default", 2)), before)
    s.check()
  }

  test("more keys than one part of the index") {
    val s = new Store
    val n = 150000
    s.batch(for (i <- 0 until n) put(s.family, longs(i), longs(i)))
    for (i <- 0 until n) assert(s.family.get(longs(i), Start, 8))
    assert(!s.family.get(longs(n), Start, 8))
    s.batch(for (i <- 0 until n if i % 3 != 0) remove(s.family, longs(i)))
    for (i <- 0 until n) assert(s.family.get(longs(i), Start, 8) == (i % 3 == 0))
  }
}
