// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import java.util.UUID

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.SparkEnv
import org.apache.spark.sql.execution.streaming.state.{StateStoreCoordinatorRef, StateStoreProviderId}
import org.apache.spark.sql.internal.SQLConf

/** Reports to Spark's coordinator, which it takes since 4.1. */
class SnapshotReportsSuite extends AnyFunSuite {

  /** For Spark's own tests: private in Scala and public in bytecode. */
  private val laggingStores = classOf[StateStoreCoordinatorRef]
    .getMethod("getLaggingStoresForTesting", classOf[UUID], classOf[Long], classOf[Boolean])

  /** With Spark's coordinator, for which a store is behind that has reported none of the last ten versions. */
  private def withCoordinator(body: (StoreHarness, Long => Boolean) => Unit): Unit = {
    val harness = new StoreHarness()
    try {
      val conf = new SQLConf
      conf.setConf(SQLConf.STATE_STORE_COORDINATOR_MULTIPLIER_FOR_MIN_VERSION_DIFF_TO_LOG, 1L)
      val coordinator = StateStoreCoordinatorRef.forDriver(SparkEnv.get, conf)
      val run = UUID.fromString(harness.job)
      val id = StateStoreProviderId(harness.provider.stateStoreId, run)

      def isBehind(version: Long): Boolean = {
        coordinator.reportActiveInstance(id, "host", "executor", Nil)
        laggingStores.invoke(coordinator, run, Long.box(version), Boolean.box(true)).asInstanceOf[Seq[_]].contains(id)
      }
      body(harness, isBehind)
    } finally harness.close()
  }

  test("a store that commits is never behind for Spark's coordinator") {
    withCoordinator { (h, isBehind) =>
      (0L until 25).foreach { version =>
        h.commit(version, version)
        assert(!isBehind(version + 1), s"at version ${version + 1}")
      }
    }
  }

  test("the first version that a run commits is reported, and then one of a few") {
    withCoordinator { (h, isBehind) =>
      val id = StateStoreProviderId(h.provider.stateStoreId, UUID.fromString(h.job))
      val reports = new SnapshotReports(id, every = 3)
      assert(isBehind(100))
      reports.committed(100)
      assert(!isBehind(110) && isBehind(111))
      reports.committed(102)
      assert(isBehind(111), "reported too often")
      reports.committed(103)
      assert(!isBehind(111))
    }
  }

  test("a version that does not count is not reported") {
    withCoordinator { (h, isBehind) =>
      h.coordinator.answer = Map("outcome" -> "discarded", "reason" -> "of no use")
      intercept[Exception](h.commit(0, 1))
      assert(isBehind(11))
    }
  }

  test("without Spark's coordinator a batch is committed all the same") {
    val harness = new StoreHarness()
    try {
      harness.commit(0, 1)
      assert(harness.read(1) == Set(1))
    } finally harness.close()
  }
}
