// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.protocol.{StoreRequest, SubtaskKey}

class KnownStatesSuite extends AnyFunSuite {
  private val key = SubtaskKey(0, "default", 3)

  /** The request of a store that has a state of a version in memory, and perhaps is asked for one. */
  private def locate(version: Long, key: SubtaskKey, have: String, asked: String = null): StoreRequest =
    StoreRequest(key, version, version, Option(asked), Some(have))

  test("an acknowledged state is current only once its checkpoint is complete") {
    val known = new KnownStates
    known.acknowledged(5, key, "x")
    assert(!known.isCurrent(locate(5, key, "x")))
    known.complete(5)
    assert(known.isCurrent(locate(5, key, "x")))
    assert(!known.isCurrent(locate(5, key, "y")))
    assert(!known.isCurrent(locate(4, key, "x")))
    assert(!known.isCurrent(locate(5, key.copy(partition = 4), "x")))
  }

  test("a state in memory is not current where Spark asks for another one") {
    val known = new KnownStates
    known.acknowledged(5, key, "x")
    known.complete(5)
    assert(known.isCurrent(locate(5, key, "x", "x")))
    assert(!known.isCurrent(locate(5, key, "x", "y")))
  }

  test("of several acks of a subtask the last one that counts is known") {
    val known = new KnownStates
    known.acknowledged(5, key, "x")
    known.acknowledged(5, key, "y")
    known.complete(5)
    assert(known.isCurrent(locate(5, key, "y")) && !known.isCurrent(locate(5, key, "x")))
  }

  test("what a batch left that was given up is not taken for the next") {
    val known = new KnownStates
    known.acknowledged(5, key, "x")
    known.acknowledged(6, key.copy(partition = 1), "z")
    known.complete(6)
    assert(!known.isCurrent(locate(6, key, "x")) && !known.isCurrent(locate(5, key, "x")))
  }
}
