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
