// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.table

import java.nio.ByteBuffer

import scala.util.Random

import io.github.sparkckpt.engine.backend.{HashMapStateBackend, HashMapTable}
import io.github.sparkckpt.engine.support.BackendTesting
import org.scalatest.funsuite.AnyFunSuite

class LookupQueueSuite extends AnyFunSuite with BackendTesting {
  private val K = 16
  private val keys = 2000

  /** A backend with keys 0, 2, 4, ..., each with itself as the value. */
  private def filled(): (HashMapStateBackend, HashMapTable) = {
    val backend = newBackend(K)
    val family = backend.declareFamily("default", groupsByHash(K))
    backend.openForWrite(0)
    for (i <- 0 until keys by 2) put(family, longs(i), longs(i))
    backend.commit()
    backend.openForWrite(1)
    (backend, family)
  }

  private def expected(changed: Iterable[Int], value: Long): Model = {
    val model = new Model
    for (i <- 0 until keys by 2) model.put(ByteBuffer.wrap(longs(i)), ByteBuffer.wrap(longs(i)))
    for (i <- changed) model.put(ByteBuffer.wrap(longs(i)), ByteBuffer.wrap(longs(value)))
    model
  }

  test("a put after a get of the same key hashes and looks up nothing") {
    val (backend, family) = filled()
    for (i <- 0 until keys) {
      assert((get(family, longs(i)) != null) == (i % 2 == 0))
      put(family, longs(i), longs(-1))
      assert(family.lookupHits == i + 1)
    }
    backend.commit()
    backend.fold()
    assertSame(contents(family), expected(0 until keys, -1))
  }

  test("puts after gets through a view of the same thread, in the same order, hash and look up nothing") {
    val (backend, family) = filled()
    val view = backend.reader("default", 1)
    val read = 0 until 1000
    read.foreach(i => get(view, longs(i)))
    // As of an aggregation that moves some keys to the end.
    val (later, first) = read.partition(_ % 20 == 7)
    (first ++ later).foreach(i => put(family, longs(i), longs(-2)))
    assert(family.lookupHits == first.size)
    backend.commit()
    backend.fold()
    assertSame(contents(family), expected(read, -2))
  }

  test("removals and appends use lookups, too") {
    val backend = newBackend(K)
    val family = backend.declareFamily("default", groupsByHash(K), multiValue = true)
    val row = longs(5)
    for (version <- 0 until 3) {
      backend.openForWrite(version)
      for (i <- 0 until 50) {
        family.contains(longs(i), Start, 8)
        family.append(longs(i), Start, 8, row, Start, 8)
      }
      for (i <- 0 until 10) {
        family.contains(longs(100 + i), Start, 8)
        assert(!remove(family, longs(100 + i)))
      }
      assert(family.lookupHits == 60)
      backend.commit()
      backend.fold()
    }
    assert(get(family, longs(1)).length == 4 + 3 * 12)
  }

  test("lookups of another thread, of another version, and of a dropped batch are not used") {
    val (backend, family) = filled()
    val other = new Thread(() => get(backend.reader("default", 1), longs(0)))
    other.start()
    other.join()
    put(family, longs(0), longs(7))
    assert(family.lookupHits == 0)
    val view = backend.reader("default", 1)
    assert(get(view, longs(2)) != null)
    remove(family, longs(2))
    backend.commit()
    backend.openForWrite(2)
    put(family, longs(2), longs(8))
    assert(family.lookupHits == 0)
    get(family, longs(4))
    backend.discard()
    backend.openForWrite(2)
    val next = backend.table("default")
    put(next, longs(4), longs(9))
    assert(next.lookupHits == 0)
    assert(get(next, longs(2)) == null && get(next, longs(0)).toSeq == longs(7).toSeq)
  }

  test("puts in another order than the gets give up the queue, and a queue is limited") {
    val (backend, family) = filled()
    val view = backend.reader("default", 1)
    val before = backend.memoryBytes
    val order = new Random(3).shuffle((0 until keys).toList)
    for (_ <- 0 until 10; i <- order) get(view, longs(i))
    // Pages that were read from the local disk count, too.
    if (tier == null) {
      val held = backend.memoryBytes - before
      assert(held > LookupQueue.MinBytes / 2 && held <= LookupQueue.MinBytes)
    }
    for (i <- order.reverse) put(family, longs(i), longs(1))
    assert(family.lookupHits < 100)
    assert(family.lookups.bytes == 0)
    backend.commit()
    backend.fold()
    assertSame(contents(family), expected(0 until keys, 1))
  }

  test("the limit follows the lookups that the batch before has used") {
    val (backend, family) = filled()
    def hits(version: Long): Long = {
      val view = backend.reader("default", version)
      for (n <- 0 until 10; i <- 0 until keys) get(view, longs(i, n))
      for (n <- 0 until 10; i <- 0 until keys) put(family, longs(i, n), longs(version))
      val found = family.lookupHits
      backend.commit()
      backend.openForWrite(version + 1)
      found
    }
    assert(hits(1) < keys * 10)
    assert(hits(2) == keys * 10)
  }

  test("random reads through views and the table, and writes, agree with a map") {
    val r = new Random(5)
    val backend = newBackend(K)
    var family = backend.declareFamily("default", groupsByHash(K))
    val model = new Model
    def any(): Array[Byte] = longs(Seq.fill(1 + r.nextInt(2))(r.nextInt(30).toLong): _*)
    var hits = 0L
    for (_ <- 0 until 60) {
      val before = copyOf(model)
      backend.openForWrite(backend.version)
      family = backend.table("default")
      val view = backend.reader("default", backend.foldedVersion)
      val read = Seq.fill(r.nextInt(80))(any())
      read.foreach { k =>
        val found = get(view, k)
        assert(Option(found).map(ByteBuffer.wrap) == Option(before.get(ByteBuffer.wrap(k))))
      }
      val again = if (r.nextInt(4) == 0) r.shuffle(read) else read.filter(_ => r.nextInt(5) > 0)
      (again ++ Seq.fill(5)(any())).foreach { k =>
        if (r.nextBoolean()) {
          assert(Option(get(family, k)).map(ByteBuffer.wrap) == Option(model.get(ByteBuffer.wrap(k))))
        }
        if (r.nextInt(4) == 0) {
          assert(remove(family, k) == (model.remove(ByteBuffer.wrap(k)) != null))
        } else {
          val value = randomBytes(r, 8 * (1 + r.nextInt(3)))
          put(family, k, value)
          model.put(ByteBuffer.wrap(k), ByteBuffer.wrap(value))
        }
      }
      hits += family.lookupHits
      if (r.nextInt(5) == 0) {
        backend.discard()
        model.clear()
        model.putAll(before)
      } else {
        backend.commit()
        if (r.nextBoolean()) backend.fold()
      }
    }
    assert(hits > 200)
    backend.fold()
    assertSame(contents(backend.table("default")), model)
  }
}
