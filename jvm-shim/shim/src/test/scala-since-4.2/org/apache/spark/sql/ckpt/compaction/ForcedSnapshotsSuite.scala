// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compaction

import java.util.UUID

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.SparkEnv
import org.apache.spark.sql.ckpt.store.StoreHarness
import org.apache.spark.sql.execution.streaming.state.{StateStoreCoordinatorRef, StateStoreProviderId}
import org.apache.spark.sql.internal.SQLConf

/** Since 4.2, Spark's coordinator asks stores that are behind for a snapshot. */
class ForcedSnapshotsSuite extends AnyFunSuite {
  test("a store that commits is never asked for a snapshot by Spark's coordinator, one without reports is") {
    val h = new StoreHarness()
    try {
      val conf = new SQLConf
      conf.setConf(SQLConf.STATE_STORE_COORDINATOR_MULTIPLIER_FOR_MIN_VERSION_DIFF_TO_LOG, 1L)
      val coordinator = StateStoreCoordinatorRef.forDriver(SparkEnv.get, conf)
      val run = UUID.fromString(h.job)

      def isAsked(id: StateStoreProviderId, version: Long): Boolean = {
        coordinator.reportActiveInstance(id, "host", "executor", Nil)
        coordinator.logLaggingStateStores(run, version, isTerminatingTrigger = true)
        coordinator.reportActiveInstance(id, "host", "executor", Nil).shouldForceSnapshotUpload
      }
      val id = StateStoreProviderId(h.provider.stateStoreId, run)
      (0L until 25).foreach { version =>
        h.commit(version, version)
        assert(!isAsked(id, version + 1), s"at version ${version + 1}")
      }
      assert(isAsked(StateStoreProviderId(id.storeId.copy(partitionId = 7), run), 25))
    } finally h.close()
  }
}
