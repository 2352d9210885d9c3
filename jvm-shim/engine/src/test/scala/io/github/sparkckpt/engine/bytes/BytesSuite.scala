// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.bytes

import java.util.Arrays

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.unsafe.Platform

class BytesSuite extends AnyFunSuite {
  private val Start = Platform.BYTE_ARRAY_OFFSET.toLong
  private val random = new Random(1)

  private def bytes(length: Int): Array[Byte] = {
    val made = new Array[Byte](length)
    random.nextBytes(made)
    made
  }

  test("keys are equal, and have equal hashes, if all of their bytes are equal") {
    for (length <- 8 to 64 by 8) {
      val key = bytes(length)
      val moved = bytes(8) ++ key
      assert(Bytes.equalWords(key, Start, moved, Start + 8, length))
      assert(Bytes.hash(key, Start, length) == Bytes.hash(moved, Start + 8, length))
      for (i <- 0 until length) {
        val other = key.clone()
        other(i) = (other(i) + 1).toByte
        assert(!Bytes.equalWords(key, Start, other, Start, length))
      }
    }
    assert(Bytes.equalWords(null, 0, null, 0, 0))
  }

  test("a slice is equal to bytes of its length only") {
    val key = bytes(24)
    val slice = new Slice().point(key, Start + 8, 16)
    assert(slice.base.eq(key) && slice.offset == Start + 8 && slice.length == 16)
    assert(Bytes.isEqual(slice, key.drop(8), Start, 16))
    assert(!Bytes.isEqual(slice, key.drop(8), Start, 8))
    assert(!Bytes.isEqual(slice.point(key, Start, 16), key.drop(8), Start, 16))
  }

  test("a copy has the bytes, and leaves those around it as they are") {
    for (length <- Seq(0, 1, 7, 8, 9, 95, 96, 97, 104, 1000)) {
      val (from, to) = (bytes(length + 8), bytes(length + 16))
      val before = to.clone()
      Bytes.copy(from, Start + 8, to, Start + 8, length)
      assert(Arrays.equals(to, before.take(8) ++ from.drop(8) ++ before.takeRight(8)))
      assert(Arrays.equals(Bytes.toArray(to, Start + 8, length), from.drop(8)))
    }
  }

  test("words hold bytes, up to the largest array") {
    assert(Seq(0, 1, 8, 9, Int.MaxValue).map(Bytes.words) == Seq(0, 1, 1, 2, 1 << 28))
  }
}
