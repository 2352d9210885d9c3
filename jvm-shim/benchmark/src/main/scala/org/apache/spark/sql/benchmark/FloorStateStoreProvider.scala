// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.benchmark

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType

/**
 * Floor of a batch's duration, with a state store that does next to nothing: one map of the JVM that is changed in
 * place and lost with the process. It has no versions and writes no file, so it can neither repeat a batch nor restart
 * a query.
 */
class FloorStateStoreProvider extends StateStoreProvider {
  private var storeId: StateStoreId = _
  private var map: HDFSBackedStateStoreMap = _

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
    if (useColumnFamilies || useMultipleValuesPerKey) throw unsupported("init")
    val prefixColumns = keyStateEncoderSpec match {
      case PrefixKeyScanStateEncoderSpec(_, columns) => columns
      case _: NoPrefixKeyStateEncoderSpec => 0
      case _ => throw unsupported(keyStateEncoderSpec.toString)
    }
    storeId = stateStoreId
    map = HDFSBackedStateStoreMap.create(keySchema, prefixColumns, None)
  }

  override def stateStoreId: StateStoreId = storeId

  override def getStore(
      version: Long,
      stateStoreCkptId: Option[String],
      forceSnapshotOnCommit: Boolean,
      loadEmpty: Boolean): StateStore = new FloorStateStore(version)

  override def close(): Unit = ()

  private def unsupported(operation: String) =
    StateStoreErrors.unsupportedOperationException(operation, getClass.getName)

  private class FloorStateStore(override val version: Long) extends StateStore {
    private var committed = false

    override def id: StateStoreId = storeId

    override def get(key: UnsafeRow, colFamilyName: String): UnsafeRow = map.get(key)

    override def put(key: UnsafeRow, value: UnsafeRow, colFamilyName: String): Unit =
      map.put(key.copy(), StateStoreRow(value.copy()))

    override def remove(key: UnsafeRow, colFamilyName: String): Unit = map.remove(key)

    override def iterator(colFamilyName: String): StateStoreIterator[UnsafeRowPair] =
      new StateStoreIterator(map.iterator())

    override def prefixScan(prefixKey: UnsafeRow, colFamilyName: String): StateStoreIterator[UnsafeRowPair] =
      new StateStoreIterator(map.prefixScan(prefixKey))

    override def commit(): Long = {
      committed = true
      version + 1
    }

    override def hasCommitted: Boolean = committed

    override def abort(): Unit = ()

    override def release(): Unit = ()

    override def metrics: StateStoreMetrics = StateStoreMetrics(map.size(), 0, Map.empty)

    override def getStateStoreCheckpointInfo(): StateStoreCheckpointInfo =
      StateStoreCheckpointInfo(storeId.partitionId, version + 1, None, None)

    override def allColumnFamilyNames: Set[String] = Set(StateStore.DEFAULT_COL_FAMILY_NAME)

    override def createColFamilyIfAbsent(
        colFamilyName: String,
        keySchema: StructType,
        valueSchema: StructType,
        keyStateEncoderSpec: KeyStateEncoderSpec,
        useMultipleValuesPerKey: Boolean,
        isInternal: Boolean): Unit = throw unsupported("createColFamilyIfAbsent")

    override def removeColFamilyIfExists(colFamilyName: String): Boolean = throw unsupported("removeColFamilyIfExists")

    override def valuesIterator(key: UnsafeRow, colFamilyName: String): Iterator[UnsafeRow] =
      throw unsupported("valuesIterator")

    override def putList(key: UnsafeRow, values: Array[UnsafeRow], colFamilyName: String): Unit =
      throw unsupported("putList")

    override def merge(key: UnsafeRow, value: UnsafeRow, colFamilyName: String): Unit = throw unsupported("merge")

    override def mergeList(key: UnsafeRow, values: Array[UnsafeRow], colFamilyName: String): Unit =
      throw unsupported("mergeList")

    override def prefixScanWithMultiValues(
        prefixKey: UnsafeRow,
        colFamilyName: String): StateStoreIterator[UnsafeRowPair] = throw unsupported("prefixScanWithMultiValues")

    override def iteratorWithMultiValues(colFamilyName: String): StateStoreIterator[UnsafeRowPair] =
      throw unsupported("iteratorWithMultiValues")
  }
}
