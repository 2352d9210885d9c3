// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.ckpt.common.{Settings, SparkVersion}
import org.apache.spark.sql.ckpt.compat._
import org.apache.spark.sql.ckpt.driver.CheckpointDriver
import org.apache.spark.sql.ckpt.families.{ColumnFamilies, ColumnFamily, ValueEncoding}
import org.apache.spark.sql.ckpt.locate.StandaloneJob
import org.apache.spark.sql.ckpt.store._
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.NextIterator

/**
 * Spark's entry point to spark-ckpt, to be named in `spark.sql.streaming.stateStore.providerClass`. It adapts Spark's
 * interface to a [[SubtaskStore]].
 */
class CheckpointStateStoreProvider
    extends StateStoreProvider
    with SupportsFineGrainedReplay
    with ProviderMethodsSince41
    with ProviderMethodsSince42
    with ProviderMethodsSince43
    with SnapshotVersionMetric {

  // On another minor version of Spark, link nothing here: `supportedCustomMetrics`, Spark's next call, refuses that
  // version. This constructor runs through reflection, which would hide the message.
  if (SparkVersion.fits) CheckpointDriver.onProviderConstructed()

  private[ckpt] var subtask: SubtaskStore = _

  override def init(
      stateStoreId: StateStoreId,
      keySchema: StructType,
      valueSchema: StructType,
      keyStateEncoderSpec: KeyStateEncoderSpec,
      useColumnFamilies: Boolean,
      storeConfs: StateStoreConf,
      hadoopConf: Configuration,
      useMultipleValuesPerKey: Boolean,
      stateSchemaProvider: Option[StateSchemaProvider]): Unit = {
    SparkVersion.check()
    val settings = storeConfs.sqlConfs.filter(_._1.startsWith(Settings.Prefix))
    val default = ColumnFamily(StateStore.DEFAULT_COL_FAMILY_NAME,
      keySchema, valueSchema, keyStateEncoderSpec, useMultipleValuesPerKey, isInternal = false)
    val families = new ColumnFamilies(
      useColumnFamilies, ValueEncoding.of(storeConfs.stateStoreEncodingFormat, stateSchemaProvider), default)
    subtask = new SubtaskStore(
      stateStoreId, families, storeConfs, hadoopConf, settings, () => CheckpointDriver.withoutApplication)
    if (subtask.job.isInstanceOf[StandaloneJob]) CheckpointDriver.ensureStartedForStore(settings)
  }

  override def stateStoreId: StateStoreId = subtask.id

  override def getStore(
      version: Long,
      stateStoreCkptId: Option[String],
      forceSnapshotOnCommit: Boolean,
      loadEmpty: Boolean): CheckpointStateStore =
    subtask.openForWrite(version, stateStoreCkptId, forceSnapshotOnCommit, loadEmpty)

  override def getReadStore(version: Long, uniqueId: Option[String]): CheckpointReadStore =
    subtask.openForRead(version, uniqueId)

  override def upgradeReadStoreToWriteStore(
      readStore: ReadStateStore,
      version: Long,
      uniqueId: Option[String],
      forceSnapshotOnCommit: Boolean): CheckpointStateStore =
    subtask.upgrade(readStore, version, uniqueId, forceSnapshotOnCommit)

  override def replayStateFromSnapshot(
      snapshotVersion: Long,
      endVersion: Long,
      readOnly: Boolean,
      snapshotId: Option[String],
      endId: Option[String]): CheckpointStateStore =
    subtask.replayForWrite(snapshotVersion, endVersion, snapshotId, endId)

  override def replayReadStateFromSnapshot(
      snapshotVersion: Long,
      endVersion: Long,
      snapshotId: Option[String],
      endId: Option[String]): CheckpointReadStore =
    subtask.replayForRead(snapshotVersion, endVersion, snapshotId, endId)

  override def getStateStoreChangeDataReader(
      startVersion: Long,
      endVersion: Long,
      columnFamily: Option[String],
      endId: Option[String]): NextIterator[(RecordType.Value, UnsafeRow, UnsafeRow, Long)] =
    subtask.changes(startVersion, endVersion, columnFamily.getOrElse(StateStore.DEFAULT_COL_FAMILY_NAME), endId)

  override def supportedCustomMetrics: Seq[StateStoreCustomMetric] = {
    SparkVersion.check()
    CheckpointDriver.checkQuery()
    StoreMetrics.all
  }

  /** Spark closes a provider that it could not initialize, too. */
  override def close(): Unit = if (subtask != null) subtask.close()

  override def toString: String = s"CheckpointStateStoreProvider[$subtask]"
}
