// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.execution.streaming.state._

/** Spark's own metric of a store: the version of its newest snapshot. */
private[ckpt] trait SnapshotVersionMetric extends StateStoreProvider {
  override def supportedInstanceMetrics: Seq[StateStoreInstanceMetric] = Seq(SnapshotVersionMetric.metric)
}

private[ckpt] object SnapshotVersionMetric {
  private val metric = StateStoreSnapshotLastUploadInstanceMetric()

  /** @param snapshotVersion for us, see [[org.apache.spark.sql.ckpt.store.NewestBase]] */
  def metrics(
      rows: Long,
      memoryBytes: Long,
      custom: Map[StateStoreCustomMetric, Long],
      store: StateStoreId,
      snapshotVersion: Long): StateStoreMetrics =
    StateStoreMetrics(rows, memoryBytes, custom,
      Map(metric.withNewId(store.partitionId, store.storeName) -> snapshotVersion))
}
