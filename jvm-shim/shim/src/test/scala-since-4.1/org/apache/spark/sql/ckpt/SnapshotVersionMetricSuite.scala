// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt

import org.scalatest.concurrent.Eventually._
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

import org.apache.spark.sql.ckpt.store.StoreHarness
import org.apache.spark.sql.execution.streaming.state.StateStore

/** Metrics of single stores, which Spark has since 4.1. */
class SnapshotVersionMetricSuite extends AnyFunSuite {
  private def reported(store: StateStore): Map[String, Long] =
    store.metrics.instanceMetrics.map { case (metric, value) => metric.name -> value }

  test("a store reports its newest base under the name that Spark gives its own snapshots") {
    val h = new StoreHarness()
    try {
      val name = "SnapshotLastUploaded.partition_0_default"
      assert(h.provider.supportedInstanceMetrics.map(_.metricPrefix) == Seq("SnapshotLastUploaded"))
      assert(reported(h.commit(0, 1)) == Map(name -> 0))
      h.coordinator.baseDue = true
      assert(reported(h.commit(1, 2)) == Map(name -> 0))
      eventually(timeout(5.minutes))(assert(h.provider.subtask.waitingBase))
      // The base was begun when version 1 was the folded one.
      assert(reported(h.commit(2, 3)) == Map(name -> 1))
      val other = h.newProvider()
      val store = other.getStore(3)
      store.put(h.row(4), h.row(4))
      store.commit()
      // The stub of the coordinator knows no bases.
      assert(reported(store) == Map(name -> 0))
      assert(reported(h.newProvider(partition = 7).getStore(0)) == Map("SnapshotLastUploaded.partition_7_default" -> 0))
    } finally h.close()
  }
}
