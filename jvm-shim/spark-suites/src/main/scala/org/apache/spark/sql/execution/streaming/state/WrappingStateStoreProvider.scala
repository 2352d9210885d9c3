// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.types.StructType

/** A provider that hands out stores of another one, wrapped. */
abstract class WrappingStateStoreProvider(override protected val inner: StateStoreProvider) extends WrappedStores {

  override def init(
      stateStoreId: StateStoreId,
      keySchema: StructType,
      valueSchema: StructType,
      keyStateEncoderSpec: KeyStateEncoderSpec,
      useColumnFamilies: Boolean,
      storeConfs: StateStoreConf,
      hadoopConf: Configuration,
      useMultipleValuesPerKey: Boolean,
      stateSchemaProvider: Option[StateSchemaProvider]): Unit =
    inner.init(stateStoreId, keySchema, valueSchema, keyStateEncoderSpec, useColumnFamilies, storeConfs, hadoopConf,
      useMultipleValuesPerKey, stateSchemaProvider)

  override def stateStoreId: StateStoreId = inner.stateStoreId

  override def getReadStore(version: Long, uniqueId: Option[String]): ReadStateStore =
    inner.getReadStore(version, uniqueId)

  override def doMaintenance(): Unit = inner.doMaintenance()
  override def close(): Unit = inner.close()
  override def supportedCustomMetrics: Seq[StateStoreCustomMetric] = inner.supportedCustomMetrics
}

/**
 * In the place of the class of this name in Spark's test jar, which has `new RocksDBStateStoreProvider` inside. By name
 * the provider under test can stand in.
 */
class CkptIdCollectingStateStoreProviderWrapper
    extends WrappingStateStoreProvider(StateStoreProvider.create(classOf[RocksDBStateStoreProvider].getName)) {
  override protected def wrap(store: StateStore): StateStore = CkptIdCollectingStateStoreWrapper(store)
}
