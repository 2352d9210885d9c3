// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.execution.streaming.state._

/** Spark has metrics of single stores since 4.1. */
private[ckpt] trait SnapshotVersionMetric extends StateStoreProvider

private[ckpt] object SnapshotVersionMetric {
  def metrics(
      rows: Long,
      memoryBytes: Long,
      custom: Map[StateStoreCustomMetric, Long],
      store: StateStoreId,
      snapshotVersion: Long): StateStoreMetrics = StateStoreMetrics(rows, memoryBytes, custom)
}
