// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import io.github.sparkckpt.engine.backend.KeyedTable

import org.apache.spark.TaskContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.ckpt.compat.{ReusableScans, WriteMethodsSince41, WriteMethodsSince42}
import org.apache.spark.sql.ckpt.families.ColumnFamily
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType

/**
 * Changes of one batch to a version of the state. Writes go to the backend's write buffer; `commit` acknowledges them
 * to the checkpoint coordinator.
 *
 * @param epoch epoch of the subtask when it opened this store. In a later epoch the store belongs to an abandoned
 *              attempt, and every use of it fails
 */
private[ckpt] final class CheckpointStateStore(
    subtask: SubtaskStore,
    version: Long,
    val epoch: Long,
    forceSnapshot: Boolean)
    extends StoreReads[KeyedTable](subtask, version)
    with StateStore
    with WriteMethodsSince41
    with WriteMethodsSince42
    with ReusableScans
    with Logging {

  private object Phase extends Enumeration {
    val Updating, Committed, Aborted = Value
  }

  // A Python worker may still call from another thread after its task has ended.
  @volatile private var phase = Phase.Updating
  private var committed: CommittedBatch = _

  Option(TaskContext.get()).foreach(_.addTaskCompletionListener[Unit](_ => if (phase == Phase.Updating) abort()))

  override protected def checkCurrent(): Unit = subtask.checkCurrent(this)

  override protected def open(family: ColumnFamily): KeyedTable = subtask.tableForWrite(this, family)

  private def checkUpdating(operation: String): Unit =
    if (phase != Phase.Updating) {
      throw new IllegalStateException(s"Cannot $operation after already committed or aborted")
    }

  override def put(key: UnsafeRow, value: UnsafeRow, colFamilyName: String): Unit = {
    checkUpdating("put")
    require(key != null, "Cannot put a null key")
    require(value != null, "Cannot put a null value")
    val target = family("put", colFamilyName)
    if (target.family.multiValue) {
      putList(key, Array(value), colFamilyName)
    } else {
      val stored = target.encoding
      stored.encode(value)
      target.entries.put(
        key.getBaseObject, key.getBaseOffset, key.getSizeInBytes, stored.base, stored.offset, stored.length)
    }
  }

  override def remove(key: UnsafeRow, colFamilyName: String): Unit = {
    checkUpdating("remove")
    require(key != null, "Cannot remove a null key")
    family("remove", colFamilyName).entries.remove(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes)
  }

  override def deleteRange(beginKey: UnsafeRow, endKey: UnsafeRow, colFamilyName: String): Unit = {
    checkUpdating("deleteRange")
    require(beginKey != null && endKey != null, "Cannot delete a range without its ends")
    val target = family("deleteRange", colFamilyName)
    target.scans.removeRange(target.entries, beginKey, endKey)
  }

  override def putList(key: UnsafeRow, values: Array[UnsafeRow], colFamilyName: String): Unit =
    listOf("putList", key, values, colFamilyName)
      .putList(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes)

  override def mergeList(key: UnsafeRow, values: Array[UnsafeRow], colFamilyName: String): Unit =
    listOf("mergeList", key, values, colFamilyName)
      .appendList(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes)

  private def listOf(
      operation: String,
      key: UnsafeRow,
      values: Array[UnsafeRow],
      columnFamily: String): KeyedTable = {
    checkUpdating(operation)
    require(key != null, s"Cannot $operation to a null key")
    require(values != null && !values.contains(null), "Cannot put a null value")
    val target = listFamily(operation, columnFamily)
    val stored = target.encoding
    target.entries.startList()
    values.foreach { row =>
      stored.encode(row)
      target.entries.addToList(stored.base, stored.offset, stored.length)
    }
    target.entries
  }

  override def merge(key: UnsafeRow, value: UnsafeRow, colFamilyName: String): Unit = {
    checkUpdating("merge")
    require(key != null, "Cannot merge to a null key")
    require(value != null, "Cannot put a null value")
    val target = listFamily("merge", colFamilyName)
    val stored = target.encoding
    stored.encode(value)
    target.entries.append(
      key.getBaseObject, key.getBaseOffset, key.getSizeInBytes, stored.base, stored.offset, stored.length)
  }

  override def createColFamilyIfAbsent(
      colFamilyName: String,
      keySchema: StructType,
      valueSchema: StructType,
      keyStateEncoderSpec: KeyStateEncoderSpec,
      useMultipleValuesPerKey: Boolean,
      isInternal: Boolean): Unit = {
    checkUpdating("create_col_family")
    subtask.families.checkChange("create_col_family", colFamilyName, isInternal)
    val family = ColumnFamily(
      colFamilyName, keySchema, valueSchema, keyStateEncoderSpec, useMultipleValuesPerKey, isInternal)
    if (subtask.createFamily(this, family)) forgetFamilies()
  }

  override def removeColFamilyIfExists(colFamilyName: String): Boolean = {
    checkUpdating("remove_col_family")
    subtask.families.checkChange("remove_col_family", colFamilyName, isInternal = false)
    forgetFamilies()
    subtask.dropFamily(this, colFamilyName)
  }

  override def commit(): Long = {
    checkUpdating("commit")
    committed = subtask.commit(this, forceSnapshot)
    phase = Phase.Committed
    committed.version
  }

  override def abort(): Unit = {
    if (phase == Phase.Updating) subtask.discard(this)
    phase = Phase.Aborted
  }

  override def hasCommitted: Boolean = phase == Phase.Committed

  override def metrics: StateStoreMetrics = subtask.metrics(Option(committed), forceSnapshot)

  override def getStateStoreCheckpointInfo(): StateStoreCheckpointInfo = StateStoreCheckpointInfo(
    id.partitionId,
    version + 1,
    Option(committed).map(_.stateId),
    Option(committed).flatMap(batch => Option(batch.baseStateId).filter(_.nonEmpty)))

  override def toString: String = s"CheckpointStateStore[${subtask.id}, version $version]"
}
