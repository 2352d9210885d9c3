// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.util.NextIterator

/** Methods of `ReadStateStore` since Spark 4.1, declared so that common code can override them. */
private[ckpt] trait ReadMethodsSince41 {
  def release(): Unit
}

/** Methods of `StateStore` since Spark 4.1. */
private[ckpt] trait WriteMethodsSince41 {
  def putList(key: UnsafeRow, values: Array[UnsafeRow], columnFamily: String): Unit
  def mergeList(key: UnsafeRow, values: Array[UnsafeRow], columnFamily: String): Unit
  def release(): Unit = throw new UnsupportedOperationException("release is for stores that are only read")
}

/** Methods of `StateStoreProvider` and `SupportsFineGrainedReplay` since Spark 4.1, and the shorter ones before. */
private[ckpt] trait ProviderMethodsSince41 extends StateStoreProvider with SupportsFineGrainedReplay {
  def upgradeReadStoreToWriteStore(readStore: ReadStateStore, version: Long, stateId: Option[String]): StateStore

  def replayStateFromSnapshot(
      from: Long,
      until: Long,
      readOnly: Boolean,
      fromId: Option[String],
      untilId: Option[String]): StateStore

  def replayReadStateFromSnapshot(
      from: Long,
      until: Long,
      fromId: Option[String],
      untilId: Option[String]): ReadStateStore

  def getStateStoreChangeDataReader(
      from: Long,
      until: Long,
      columnFamily: Option[String],
      untilId: Option[String]): NextIterator[(RecordType.Value, UnsafeRow, UnsafeRow, Long)]

  override def replayStateFromSnapshot(from: Long, until: Long): StateStore =
    replayStateFromSnapshot(from, until, readOnly = false, None, None)

  override def replayReadStateFromSnapshot(from: Long, until: Long): ReadStateStore =
    replayReadStateFromSnapshot(from, until, None, None)

  override def getStateStoreChangeDataReader(
      from: Long,
      until: Long,
      columnFamily: Option[String]): NextIterator[(RecordType.Value, UnsafeRow, UnsafeRow, Long)] =
    getStateStoreChangeDataReader(from, until, columnFamily, None)
}
