// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.hadoop.conf.Configuration

import org.apache.spark.SparkEnv
import org.apache.spark.sql.execution.streaming.state._

/** Reports to Spark's `StateStoreCoordinator`. */
private[ckpt] object CoordinatorReports {
  def wantsSnapshots(conf: StateStoreConf): Boolean = conf.reportSnapshotUploadLag

  def snapshot(store: StateStoreProviderId, version: Long): Unit =
    StateStoreCoordinatorRef.forExecutor(SparkEnv.get).snapshotUploaded(store, version, System.currentTimeMillis())

  /** Sent only if the session validates commits. */
  def commit(store: StateStoreId, version: Long, conf: StateStoreConf, hadoopConf: Configuration): Unit =
    if (conf.commitValidationEnabled) StateStore.reportCommitToCoordinator(version, store, hadoopConf)
}
