// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

import java.nio.ByteBuffer

import io.github.sparkckpt.engine.segment.StateSegment
import io.github.sparkckpt.engine.support.{BackendTesting, ByteOrder, FirstWordPrefix}
import io.github.sparkckpt.engine.table.KeyAccess
import org.scalatest.funsuite.AnyFunSuite

/** Families that come, go and change; versions. */
class FamiliesSuite extends AnyFunSuite with BackendTesting {
  private val K = 16

  private def declared(
      backend: HashMapStateBackend,
      name: String,
      access: KeyAccess = KeyAccess.Point,
      lists: Boolean = false): HashMapTable =
    backend.declareFamily(name, groupsByHash(K), access, lists)

  private def backend(): HashMapStateBackend = {
    val b = newBackend(K)
    declared(b, "default")
    b.openForWrite(0)
    val f = declared(b, "a")
    for (i <- 0 until 10) put(f, longs(i), longs(i))
    put(b.table("default"), longs(1), longs(1))
    b.commit()
    b
  }

  private def restored(version: Long, segments: StateSegment*): HashMapStateBackend = {
    val b = newBackend(K)
    b.restore(version, 0, segments, everything)
    b
  }

  test("a family made in a batch goes with it") {
    val b = backend()
    assert(b.familyNames == Set("default", "a"))
    assert(b.reader("a", 1).rowCount == 10 && b.reader("a", 0) == null)
    assert(b.undoCommit())
    assert(!b.undoCommit())
    assert(b.familyNames == Set("default") && b.table("a") == null)
    assert(b.rowCount == 0)
    b.openForWrite(0)
    declared(b, "b")
    b.discard()
    assert(b.familyNames == Set("default"))
  }

  test("dropping a family is part of the batch, and its delta removes the keys") {
    val b = backend()
    val first = segment(isBase = false, b.deltaBytes())
    b.openForWrite(1)
    put(b.table("a"), longs(3), longs(33))
    put(b.table("a"), longs(100), longs(100))
    assert(b.dropFamily("a"))
    assert(!b.dropFamily("a"))
    assert(b.familyNames == Set("default") && b.rowCount == 1 && b.rowsRemoved == 10)
    b.discard()
    assert(b.rowCount == 11 && contents(b.reader("a", 1)).size == 10)

    b.openForWrite(1)
    b.dropFamily("a")
    val delta = b.deltaBytes()
    assert(delta.info.entries == 10)
    b.commit()
    assert(b.reader("a", 2) == null && b.reader("a", 1).rowCount == 10)
    b.undoCommit()
    assert(b.reader("a", 1).rowCount == 10 && b.table("a").rowCount == 10)
    b.openForWrite(1)
    b.dropFamily("a")
    b.commit()
    b.fold()
    assert(b.table("a") == null && b.rowCount == 1)
    val other = restored(2, first, segment(isBase = false, delta))
    assert(other.rowCount == 1)
  }

  test("a family that is dropped and made again in one batch, with another key schema") {
    val b = backend()
    val first = segment(isBase = false, b.deltaBytes())
    b.openForWrite(1)
    b.dropFamily("a")
    // Would fail on the old keys, which have one word.
    val access = new KeyAccess.Ordered {
      override def id: String = "two words"
      override def encode(base: AnyRef, offset: Long, length: Int): Array[Byte] = {
        require(length == 16)
        bytes(base, offset, length)
      }
    }
    val f = declared(b, "a", access)
    assert(f.rowCount == 0 && contents(f).isEmpty && !f.get(longs(3), Start, 8))
    put(f, longs(3, 3), longs(3))
    assert(drain(f.rangeScan(null, null)).size == 1)
    val delta = b.deltaBytes()
    assert(delta.info.entries == 11 && b.rowsRemoved == 10)
    b.commit()
    b.fold()
    assert(b.table("a").rowCount == 1 && drain(b.table("a").rangeScan(null, null)).size == 1)
    val other = restored(2, first, segment(isBase = false, delta))
    assertSame(contents(other.reader("a", 2)), contents(b.reader("a", 2)))
  }

  test("keys of a dropped family that are put again are in the delta once") {
    for (access <- Seq(KeyAccess.Point, new FirstWordPrefix, new ByteOrder)) {
      val b = backend()
      val first = segment(isBase = false, b.deltaBytes())
      b.openForWrite(1)
      b.dropFamily("a")
      var f = declared(b, "a", access)
      put(f, longs(3), longs(33))
      put(f, longs(4), longs(44))
      remove(f, longs(4))
      b.dropFamily("a")
      f = declared(b, "a", access)
      put(f, longs(5), longs(55))
      put(f, longs(6), longs(66))
      remove(f, longs(6))
      put(f, longs(6), longs(67))
      assert(f.rowCount == 2 && contents(f).size == 2)
      if (access != KeyAccess.Point) assert(drain(f.prefixScan(longs(6), Start, 8)).size == 1)
      val delta = b.deltaBytes()
      assert(delta.info.entries == 10 && b.rowsRemoved == 8 && b.rowCount == 3)
      b.commit()
      b.fold()
      assert(b.rowCount == 3)
      val other = restored(2, first, segment(isBase = false, delta))
      assertSame(contents(other.reader("a", 2)), contents(b.reader("a", 2)))
    }
  }

  test("a restored family is usable once it is declared, with any access") {
    val b = backend()
    val s = segment(isBase = false, b.deltaBytes())
    for (access <- Seq(KeyAccess.Point, new FirstWordPrefix, new ByteOrder)) {
      val other = restored(1, s)
      assert(other.familyNames == Set("default", "a"))
      other.openForWrite(1)
      intercept[IllegalStateException](put(other.table("a"), longs(77), longs(1)))
      other.discard()
      other.openForWrite(1)
      val f = declared(other, "a", access)
      put(f, longs(77), longs(1))
      if (access != KeyAccess.Point) {
        assert(drain(f.prefixScan(longs(3), Start, 8)).size == 1)
        assert(drain(f.prefixScan(longs(77), Start, 8)).size == 1)
      }
      intercept[IllegalArgumentException](declared(other, "a", access, lists = true))
      other.commit()
      other.fold()
      assert(f.rowCount == 11 && (declared(other, "a", access) eq f))
      // Another access than before: the index is built anew.
      declared(other, "a", new ByteOrder)
      assert(drain(f.rangeScan(longs(5), null)).size == 6)
    }
  }

  test("an access is not changed under a batch that has written") {
    val b = backend()
    b.openForWrite(1)
    put(b.table("a"), longs(1), longs(5))
    intercept[IllegalStateException](declared(b, "a", new ByteOrder))
    assert(declared(b, "a") eq b.table("a"))
  }

  test("rows of a family that is not declared are dropped by the next restore") {
    val b = backend()
    val s = segment(isBase = false, b.deltaBytes())
    val other = restored(1, s)
    declared(other, "default")
    other.restore(0, 0, Nil, everything)
    assert(other.familyNames == Set("default") && other.rowCount == 0)
    other.clear(5)
    assert(other.version == 5 && other.canServe(5))
  }

  test("versions that are not in memory are refused") {
    val b = backend()
    assert(b.version == 1 && b.foldedVersion == 0 && b.canServe(0) && b.canServe(1) && !b.canServe(2))
    intercept[IllegalStateException](b.openForWrite(2))
    intercept[IllegalStateException](b.reader("a", 2))
    val (older, newer) = (b.reader("a", 1), b.reader("default", 0))
    b.fold()
    intercept[IllegalStateException](older.get(longs(1), Start, 8))
    intercept[IllegalStateException](newer.iterator())
    assert(b.version == 1 && b.foldedVersion == 1 && !b.canServe(0))
    intercept[IllegalStateException](b.openForWrite(0))
    intercept[IllegalStateException](b.commit())
    intercept[IllegalStateException](b.dropFamily("a"))
    intercept[IllegalStateException](b.deltaBytes())
    b.openForWrite(1)
    assert(b.isOpen)
    // Opening another batch abandons the open one.
    put(b.table("a"), longs(1), longs(100))
    b.openForWrite(1)
    assert(ByteBuffer.wrap(get(b.table("a"), longs(1))).getLong == 1)
  }

  test("the number of key groups has bounds") {
    intercept[IllegalArgumentException](new HashMapStateBackend(0))
    intercept[IllegalArgumentException](new HashMapStateBackend(32769))
    val b = newBackend(32768)
    val f = b.declareFamily("default", (_: AnyRef, _: Long, _: Int) => 32767)
    b.openForWrite(0)
    put(f, longs(1), longs(1))
    b.commit()
    b.fold()
    assert(base(b).info.keyGroups.toSeq == Seq(32767))
  }
}
