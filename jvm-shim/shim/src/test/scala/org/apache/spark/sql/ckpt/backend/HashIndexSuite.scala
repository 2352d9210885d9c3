/*
 * Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
 * the License. You may obtain a copy of the License at
 *
 *    http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on
 * an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
 * specific language governing permissions and limitations under the License.
 */
package org.apache.spark.sql.ckpt.backend

import scala.collection.mutable
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

class HashIndexSuite extends AnyFunSuite {

  private def values(index: HashIndex, hash: Int): Set[Int] = {
    val slots = index.part(hash)
    val mask = slots.length - 2
    val found = mutable.Set[Int]()
    var i = hash & mask
    while (slots(i) != 0L) {
      if ((slots(i) >>> 32).toInt == hash) assert(found.add(slots(i).toInt))
      i = (i + 1) & mask
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
