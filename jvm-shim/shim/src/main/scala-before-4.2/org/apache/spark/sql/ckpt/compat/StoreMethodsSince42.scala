// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state._

/** Methods of `ReadStateStore` since Spark 4.2, declared so that common code can override them. */
private[ckpt] trait ReadMethodsSince42 {
  def multiGet(keys: Array[UnsafeRow], columnFamily: String): Iterator[UnsafeRow]
  def keyExists(key: UnsafeRow, columnFamily: String): Boolean
  def rangeScan(
      startKey: Option[UnsafeRow],
      endKey: Option[UnsafeRow],
      columnFamily: String): StateStoreIterator[UnsafeRowPair]
  def iteratorWithMultiValues(columnFamily: String): StateStoreIterator[UnsafeRowPair]
  def prefixScanWithMultiValues(prefixKey: UnsafeRow, columnFamily: String): StateStoreIterator[UnsafeRowPair]
  def rangeScanWithMultiValues(
      startKey: Option[UnsafeRow],
      endKey: Option[UnsafeRow],
      columnFamily: String): StateStoreIterator[UnsafeRowPair]
  def allColumnFamilyNames: Set[String]
}

/** Methods of `StateStore` since Spark 4.2. */
private[ckpt] trait WriteMethodsSince42 {
  def deleteRange(beginKey: UnsafeRow, endKey: UnsafeRow, columnFamily: String): Unit
}

/** Methods of `StateStoreProvider` since Spark 4.2, and the shorter ones before. */
private[ckpt] trait ProviderMethodsSince42 extends ProviderMethodsSince41 {
  def getStore(
      version: Long,
      stateId: Option[String],
      forceSnapshotOnCommit: Boolean,
      loadEmpty: Boolean): StateStore

  def upgradeReadStoreToWriteStore(
      readStore: ReadStateStore,
      version: Long,
      stateId: Option[String],
      forceSnapshotOnCommit: Boolean): StateStore

  override def getStore(version: Long, stateId: Option[String]): StateStore =
    getStore(version, stateId, forceSnapshotOnCommit = false, loadEmpty = false)

  override def upgradeReadStoreToWriteStore(
      readStore: ReadStateStore,
      version: Long,
      stateId: Option[String]): StateStore =
    upgradeReadStoreToWriteStore(readStore, version, stateId, forceSnapshotOnCommit = false)
}
