// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.table

import java.util.{Arrays, TreeMap}

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

class OrderedIndexSuite extends AnyFunSuite {
  private def newModel() = new TreeMap[Array[Byte], Int](Arrays.compareUnsigned(_: Array[Byte], _))

  private def randomKey(r: Random): Array[Byte] = {
    val k = new Array[Byte](r.nextInt(4))
    r.nextBytes(k)
    // Some agree in their first eight bytes, and some of those end there.
    if (r.nextInt(3) == 0) Array[Byte](1, 2, 3, 4, 5, 6, 7, -1) ++ k else k
  }

  private def check(index: OrderedIndex, model: TreeMap[Array[Byte], Int], from: Array[Byte]): Unit = {
    val expected = if (from == null) model else model.tailMap(from, true)
    val cursor = index.cursor(from)
    expected.forEach { (k, v) =>
      assert(Arrays.equals(cursor.peek, k))
      assert(cursor.value == v)
      cursor.take()
    }
    assert(cursor.peek == null)
    assert(index.size == model.size)
  }

  for (seed <- 1 to 4) {
    test(s"agrees with a TreeMap, seed $seed") {
      val r = new Random(seed)
      val index = new OrderedIndex
      val model = newModel()
      for (i <- 1 to 20000) {
        val key = randomKey(r)
        if (r.nextInt(if ((i / 4000) % 2 == 0) 4 else 2) != 0) {
          index.insert(key, i)
          model.put(key, i)
        } else {
          index.delete(key)
          model.remove(key)
        }
        if (model.containsKey(key) && r.nextInt(10) == 0) {
          index.replace(key, -i)
          model.put(key, -i)
        }
        val other = randomKey(r)
        assert(index.get(other) == model.getOrDefault(other, 0))
        if (i % 2000 == 0) {
          check(index, model, null)
          check(index, model, randomKey(r))
        }
      }
    }
  }

  private def number(i: Int): Array[Byte] = Array[Byte]((i >> 16).toByte, (i >> 8).toByte, i.toByte)

  for (seed <- 1 to 4) {
    test(s"agrees with a TreeMap while many keys of a stretch go and some come, seed $seed") {
      val r = new Random(seed)
      val index = new OrderedIndex
      val model = newModel()
      for (round <- 0 until 60) {
        val from = r.nextInt(20000)
        val until = from + r.nextInt(3000)
        val oneIn = 1 + r.nextInt(150)
        val comes = r.nextInt(5) < 2
        val keys = if (r.nextBoolean()) from until until else (from until until).reverse
        keys.foreach { i =>
          if (comes) {
            index.insert(number(i), i + 1)
            model.put(number(i), i + 1)
          } else if (r.nextInt(oneIn) != 0) {
            index.delete(number(i))
            model.remove(number(i))
          }
        }
        check(index, model, null)
        check(index, model, number(r.nextInt(20000)))
        assert(index.bytes <= 90L * model.size + 20000, s"${model.size} keys in round $round")
      }
    }
  }

  test("keys that slide and leave one of many behind pin no memory") {
    for (oneIn <- Seq(2, 10, 100, 128, 1000)) {
      val index = new OrderedIndex
      val window = 5000
      val n = 100000
      for (i <- 0 until n) {
        index.insert(number(i), i + 1)
        if (i >= window && (i - window) % oneIn != 0) index.delete(number(i - window))
      }
      val live = index.size
      assert(live < window + n / oneIn + 2)
      assert(index.bytes <= 90L * live + 20000, s"one in $oneIn: $live keys")
      assert((n - window until n).forall(i => index.get(number(i)) == i + 1))
    }
  }

  test("ascending and descending keys") {
    for (keys <- Seq(0 until 5000, (0 until 5000).reverse)) {
      val index = new OrderedIndex
      val model = newModel()
      keys.foreach { i =>
        val k = Array[Byte]((i >> 8).toByte, i.toByte)
        index.insert(k, i + 1)
        model.put(k, i + 1)
      }
      check(index, model, null)
      keys.foreach(i => index.delete(Array[Byte]((i >> 8).toByte, i.toByte)))
      check(index, newModel(), null)
    }
  }

  test("a cursor continues after the last key while keys are added and removed") {
    val r = new Random(9)
    for (_ <- 0 until 20) {
      val index = new OrderedIndex
      val model = newModel()
      for (i <- 1 to 1000) {
        val k = randomKey(r)
        index.insert(k, i)
        model.put(k, i)
      }
      val cursor = index.cursor(null)
      var last: Array[Byte] = null
      while (cursor.peek != null) {
        val next = if (last == null) model.firstKey else model.higherKey(last)
        assert(Arrays.equals(cursor.peek, next))
        last = cursor.peek
        cursor.take()
        for (_ <- 0 until r.nextInt(3)) {
          val k = if (r.nextBoolean()) last else randomKey(r)
          if (r.nextInt(4) != 0) {
            index.delete(k)
            model.remove(k)
          } else {
            index.insert(k, 7)
            model.put(k, 7)
          }
        }
      }
      assert(model.higherKey(last) == null)
    }
  }
}
