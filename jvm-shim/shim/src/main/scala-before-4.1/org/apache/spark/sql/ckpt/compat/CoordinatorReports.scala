// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.execution.streaming.state.{StateStoreConf, StateStoreId, StateStoreProviderId}

/** Spark's `StateStoreCoordinator` takes reports since 4.1. */
private[ckpt] object CoordinatorReports {
  def wantsSnapshots(conf: StateStoreConf): Boolean = false

  def snapshot(store: StateStoreProviderId, version: Long): Unit = ()

  def commit(store: StateStoreId, version: Long, conf: StateStoreConf, hadoopConf: Configuration): Unit = ()
}
