// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.types.LongType

/** A store that is given the files of other subtasks, as after a rescale. */
class StoreRescaleSuite extends AnyFunSuite {
  private val numbers = 0L until 60L

  private val partitionOf: UnsafeProjection = UnsafeProjection.create(
    Seq(HashPartitioning(Seq(BoundReference(0, LongType, nullable = true)), 3).partitionIdExpression))

  private def partition(row: UnsafeRow): Int = partitionOf(row).getInt(0)

  test("a store takes its own rows of segments that several subtasks share, removals included") {
    val harness = new StoreHarness()
    try {
      harness.commit(0, numbers: _*)
      harness.asTask(batch = 1)
      val second = harness.open(1)
      numbers.filter(_ % 5 == 0).foreach(n => second.remove(harness.row(n)))
      second.put(harness.row(100), harness.row(100))
      second.commit()
      val there = (numbers.filterNot(_ % 5 == 0) :+ 100L).toSet
      val read = (0 until 3).map { own =>
        harness.coordinator.filters = s"[[3, [$own]]]"
        val store = harness.newProvider(own).getReadStore(2, None)
        store.iterator().map(_.key.getLong(0)).toSet
      }
      (0 until 3).foreach(own => assert(read(own) == there.filter(n => partition(harness.row(n)) == own)))
      assert(read.forall(_.nonEmpty))
    } finally harness.close()
  }
}
