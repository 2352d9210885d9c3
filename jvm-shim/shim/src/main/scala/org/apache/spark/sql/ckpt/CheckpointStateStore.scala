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
package org.apache.spark.sql.ckpt

import org.apache.spark.TaskContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.ckpt.backend.{FamilyReader, KeyedFamily}
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType

/**
 * One batch's changes to a version of the state. Writes go to the backend's write buffer; `commit` acknowledges them to
 * the checkpoint coordinator.
 *
 * @param epoch of the provider when this store was opened: when it moves on, this store is a leftover of an attempt that
 *              was given up, and every use of it fails
 */
private[ckpt] final class CheckpointStateStore(
    provider: CheckpointStateStoreProvider,
    version: Long,
    epoch: Long,
    forceSnapshot: Boolean)
    extends StoreReads(provider, version)
    with StateStore
    with Logging {

  private object Phase extends Enumeration {
    val Updating, Committed, Aborted = Value
  }

  private var phase = Phase.Updating
  private var family: KeyedFamily = _
  private var familyName: String = _
  private var committed: CommittedBatch = _

  Option(TaskContext.get()).foreach(_.addTaskCompletionListener[Unit](_ => if (phase == Phase.Updating) abort()))

  override protected def reader(columnFamily: String): FamilyReader = open(columnFamily)

  private def open(columnFamily: String): KeyedFamily = {
    if (epoch != provider.epoch) throw provider.superseded(version)
    if (familyName != columnFamily) {
      family = provider.familyForWrite(columnFamily)
      familyName = columnFamily
    }
    family
  }

  private def forUpdate(operation: String, columnFamily: String): KeyedFamily = {
    if (phase != Phase.Updating) {
      throw new IllegalStateException(s"Cannot $operation after already committed or aborted")
    }
    open(columnFamily)
  }

  override def put(key: UnsafeRow, value: UnsafeRow, colFamilyName: String): Unit = {
    require(key != null, "Cannot put a null key")
    require(value != null, "Cannot put a null value")
    forUpdate("put", colFamilyName).put(
      key.getBaseObject, key.getBaseOffset, key.getSizeInBytes,
      value.getBaseObject, value.getBaseOffset, value.getSizeInBytes)
  }

  override def remove(key: UnsafeRow, colFamilyName: String): Unit = {
    require(key != null, "Cannot remove a null key")
    forUpdate("remove", colFamilyName).remove(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes)
  }

  override def putList(key: UnsafeRow, values: Array[UnsafeRow], colFamilyName: String): Unit = {
    val target = listFor("putList", key, values, colFamilyName)
    target.putList(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes)
  }

  override def mergeList(key: UnsafeRow, values: Array[UnsafeRow], colFamilyName: String): Unit = {
    val target = listFor("mergeList", key, values, colFamilyName)
    target.appendList(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes)
  }

  private def listFor(
      operation: String,
      key: UnsafeRow,
      values: Array[UnsafeRow],
      columnFamily: String): KeyedFamily = {
    require(key != null, s"Cannot $operation to a null key")
    require(values != null && !values.contains(null), "Cannot put a null value")
    val target = forUpdate(operation, columnFamily)
    requireMultiValue(schema(columnFamily), operation)
    target.startList()
    values.foreach(row => target.addToList(row.getBaseObject, row.getBaseOffset, row.getSizeInBytes))
    target
  }

  override def merge(key: UnsafeRow, value: UnsafeRow, colFamilyName: String): Unit = {
    require(key != null, "Cannot merge to a null key")
    require(value != null, "Cannot put a null value")
    val target = forUpdate("merge", colFamilyName)
    requireMultiValue(schema(colFamilyName), "merge")
    target.append(
      key.getBaseObject, key.getBaseOffset, key.getSizeInBytes,
      value.getBaseObject, value.getBaseOffset, value.getSizeInBytes)
  }

  override def createColFamilyIfAbsent(
      colFamilyName: String,
      keySchema: StructType,
      valueSchema: StructType,
      keyStateEncoderSpec: KeyStateEncoderSpec,
      useMultipleValuesPerKey: Boolean,
      isInternal: Boolean): Unit =
    throw StateStoreErrors.multipleColumnFamiliesNotSupported(CheckpointStateStoreProvider.Name)

  override def removeColFamilyIfExists(colFamilyName: String): Boolean =
    throw StateStoreErrors.removingColumnFamiliesNotSupported(CheckpointStateStoreProvider.Name)

  override def commit(): Long = {
    forUpdate("commit", StateStore.DEFAULT_COL_FAMILY_NAME)
    committed = provider.commit(this, forceSnapshot)
    phase = Phase.Committed
    committed.version
  }

  override def abort(): Unit = {
    if (phase == Phase.Updating && epoch == provider.epoch) provider.discard()
    phase = Phase.Aborted
  }

  override def hasCommitted: Boolean = phase == Phase.Committed

  override def metrics: StateStoreMetrics = provider.metrics(Option(committed), forceSnapshot)

  override def getStateStoreCheckpointInfo(): StateStoreCheckpointInfo = StateStoreCheckpointInfo(
    id.partitionId,
    version + 1,
    Option(committed).map(_.stateId),
    Option(committed).flatMap(batch => Option(batch.baseStateId).filter(_.nonEmpty)))

  override def toString: String = s"CheckpointStateStore[${provider.stateStoreId}, version $version]"
}
