// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.table

import scala.collection.mutable
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

class HashIndexSuite extends AnyFunSuite {

  private def values(index: HashIndex, hash: Int): Set[Int] = {
    val slots = index.part(hash)
    val found = mutable.Set[Int]()
    var i = HashIndex.home(hash, slots)
    while (slots(i) != 0L) {
      if ((slots(i) >>> 32).toInt == hash) assert(found.add(slots(i).toInt))
      i = HashIndex.after(i, slots)
    }
    found.toSet
  }

  private def history(seed: Int, steps: Int, expected: Long, hashOf: Random => Int): Unit = {
    val r = new Random(seed)
    val index = new HashIndex(expected)
    val model = mutable.LinkedHashMap[Int, mutable.Set[Int]]()
    val pairs = mutable.ArrayBuffer[(Int, Int)]()
    var next = Int.MaxValue - steps / 2
    for (i <- 0 until steps) {
      val growing = (i / (steps / 4)) % 2 == 0
      if (pairs.isEmpty || r.nextInt(10) < (if (growing) 8 else 1)) {
        // Values are addresses: they are used as unsigned numbers.
        val pair = (hashOf(r), next)
        next += 1
        index.insert(pair._1, pair._2)
        pairs += pair
        model.getOrElseUpdate(pair._1, mutable.Set()) += pair._2
      } else {
        val at = r.nextInt(pairs.size)
        val (hash, value) = pairs(at)
        if (r.nextInt(5) == 0) {
          index.replace(hash, value, next)
          pairs(at) = (hash, next)
          model(hash) += next
          next += 1
        } else {
          index.delete(hash, value)
          pairs(at) = pairs.last
          pairs.dropRightInPlace(1)
        }
        model(hash) -= value
      }
    }
    model.foreach { case (hash, expectedValues) => assert(values(index, hash) == expectedValues) }
  }

  test("random hashes, with growth over many parts and shrinking") {
    history(1, 200000, 0, _.nextInt())
    history(2, 50000, 100000, _.nextInt())
  }

  test("few hashes with many values each") {
    history(3, 20000, 0, r => r.nextInt(40) * 0x01010101)
    history(4, 3000, 0, _ => -1)
  }

  test("hashes that agree in their upper or lower bits") {
    history(5, 60000, 0, r => r.nextInt(1 << 17))
    history(6, 40000, 0, r => r.nextInt(1 << 12) << 20)
  }

  test("an entry takes at most 16 bytes at every size, however the index has grown") {
    val r = new Random(7)
    val grown = new HashIndex(0)
    for (n <- 1 to 1000000) {
      grown.insert(r.nextInt(), n)
      if (n >= 5000 && n % 1000 == 0) assert(grown.bytes <= 16L * n, s"$n entries")
    }
    for (n <- 5000 to 4000000 by 33333) assert(new HashIndex(n).bytes <= 16L * n, s"$n expected entries")
  }

  test("an index of the expected size does not grow") {
    val r = new Random(8)
    for (n <- Seq(100, 5000, 70000, 123456, 500000)) {
      val index = new HashIndex(n)
      val before = index.bytes
      for (i <- 1 to n) index.insert(r.nextInt(), i)
      assert(index.bytes == before, s"$n entries")
    }
  }

  private def filled(n: Int, hashOf: Random => Int, expected: Long): Unit = {
    val r = new Random(n)
    val model = mutable.Map[Int, Set[Int]]().withDefaultValue(Set.empty)
    val pending = new PendingEntries(expected)
    for (value <- 1 to n) {
      val hash = hashOf(r)
      pending.add(hash, value)
      model(hash) += value
    }
    assert(pending.count == n)
    val index = new HashIndex(0)
    index.insert(1, 1)
    index.fill(pending)
    assert(pending.count == 0)
    if (n >= 5000) assert(index.bytes <= 16L * n)
    index.insert(123, Int.MaxValue)
    model(123) += Int.MaxValue
    model.foreach { case (hash, expectedValues) => assert(values(index, hash) == expectedValues) }
  }

  test("an index filled at once has these entries, and takes more") {
    for (n <- Seq(0, 1, 9, 5000, 70000, 500000); expected <- Seq(0, n / 20, n, 3 * n)) {
      filled(n, _.nextInt(), expected)
    }
    for (expected <- Seq(0, 20000, 500000)) {
      filled(20000, r => r.nextInt(1 << 12) << 20, expected)
      filled(20000, r => r.nextInt(1 << 20), expected)
      filled(3000, _ => -1, expected)
      filled(9000, r => if (r.nextInt(2) == 0) r.nextInt() else r.nextInt(3), expected)
    }
  }

  test("the index gives memory back") {
    val index = new HashIndex(0)
    for (i <- 1 to 100000) index.insert(i * 0x9E3779B1, i)
    val full = index.bytes
    for (i <- 1 to 100000) index.delete(i * 0x9E3779B1, i)
    assert(index.bytes < full / 100)
  }

  test("an entry that is not there is an error and no endless loop") {
    val index = new HashIndex(0)
    index.insert(7, 1)
    intercept[IllegalStateException](index.delete(7, 2))
    intercept[IllegalStateException](index.replace(8, 1, 2))
  }
}
