// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.locate

import scala.concurrent.duration.FiniteDuration

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.sql.ckpt.client.CoordinatorClient
import org.apache.spark.sql.ckpt.common.{CheckpointFailure, StoreUsageFailure}
import org.apache.spark.sql.ckpt.files.StateFiles
import org.apache.spark.sql.ckpt.protocol.{OperatorPlan, StoreHeader, SubtaskKey, TaskAttempt, Trigger}
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.streaming.runtime.{MicroBatchExecution, StreamExecution}
import org.apache.spark.sql.execution.streaming.state.StateStoreId

/**
 * Job of a store, and its part of the requests to the coordinator.
 *
 * @param ckptDirectory directory of the job's state files, `<location>/ckpt`
 */
private[ckpt] sealed abstract class StoreJob(val id: StateStoreId, val ckptDirectory: Path) {

  /**
   * Header with the common fields of all requests.
   *
   * @param version     version to read, or written
   * @param baseVersion version that the batch starts from. It equals the number of the batch. The thread's local
   *                    properties are not reliable: a thread started by a foreachBatch function may have none, and one
   *                    of a pool may have those of an earlier batch
   */
  def header(version: Long, baseVersion: Long): StoreHeader

  /** Error to throw if a version of the state has no location. */
  def refusal(version: Long, cause: CheckpointFailure): Throwable = cause
}

/** Stores of a streaming query: one run of it is one job. */
private[ckpt] final class QueryJob(id: StateStoreId, val runId: String)
    extends StoreJob(id, StoreJob.directoryOfQuery(id)) {

  override def header(version: Long, baseVersion: Long): StoreHeader =
    StoreHeader(runId, SubtaskKey(id.operatorId, id.storeName, id.partitionId), version, baseVersion)
}

/** A store of a query that does not run here: it is read-only, from the checkpoint directory alone. */
private[ckpt] final class ReaderJob(id: StateStoreId)
    extends StoreJob(id, StoreJob.directoryOfQuery(id)) {

  override def header(version: Long, baseVersion: Long): StoreHeader =
    throw new StoreUsageFailure(s"no running query has opened $id: its state is read-only")
}

/** A store without a query: a job of one subtask with its own directory. */
private[ckpt] final class StandaloneJob(id: StateStoreId, settings: Map[String, String])
    extends StoreJob(id, new Path(id.storeCheckpointLocation(), "ckpt")) {

  /** Spark's error for a missing version, the only one that users of a store without a query know. */
  override def refusal(version: Long, cause: CheckpointFailure): Throwable =
    if (!StandaloneJob.NotThere(cause.error)) cause
    else QueryExecutionErrors.failedToReadStreamingStateFileError(new Path(ckptDirectory, s"version-$version"), cause)

  private val location = id.storeCheckpointLocation().toString
  private val job = s"standalone:$location"

  override def header(version: Long, baseVersion: Long): StoreHeader = {
    val trigger = Trigger(
      job,
      location,
      StandaloneJob.QueryId,
      None,
      baseVersion,
      baseVersion + 1,
      checkpointFormat = 1,
      org.apache.spark.SPARK_VERSION,
      Seq(OperatorPlan(id.operatorId, "standalone", Seq(id.storeName), parallelism = 1, stateFormatVersion = None)),
      sources = Nil,
      offsetLog = None,
      settings,
      hadoop = Map.empty)
    StoreHeader(job, SubtaskKey(id.operatorId, id.storeName, 0), version, baseVersion, Some(trigger))
  }
}

private[ckpt] object StandaloneJob {
  val QueryId = "00000000-0000-0000-0000-000000000000"

  private val NotThere = Set("VersionNotFoundError", "IncompleteCheckpointError")
}

private[ckpt] object StoreJob {

  /**
   * The job of a store. A task without Spark's local properties may still belong to a query, as a foreachBatch function
   * can start jobs on threads that lack them. Then the driver is asked.
   *
   * @param runId    run id of the provider; of no query if a reader of state made it, and null without any
   * @param settings settings of spark-ckpt
   * @param timeout wait for the driver's reply
   * @throws CheckpointFailure if the driver is out of reach
   */
  def of(
      id: StateStoreId,
      runId: String,
      settings: Map[String, String],
      hadoopConf: Configuration,
      coordinator: CoordinatorClient,
      timeout: FiniteDuration): StoreJob =
    if (isTaskOfQuery || (runId != null && coordinator.isActive(runId, timeout))) new QueryJob(id, runId)
    else if (DirectoryLocator.hasCheckpoints(new StateFiles(directoryOfQuery(id), hadoopConf))) new ReaderJob(id)
    else new StandaloneJob(id, settings)

  private def isTaskOfQuery: Boolean = Option(TaskContext.get()).exists { context =>
    context.getLocalProperty(MicroBatchExecution.BATCH_ID_KEY) != null &&
      context.getLocalProperty(StreamExecution.QUERY_ID_KEY) != null
  }

  /** `<location>/ckpt`, beside `<location>/state`. */
  def directoryOfQuery(id: StateStoreId): Path = new Path(new Path(id.checkpointRootLocation).getParent, "ckpt")

  /** The requesting attempt. */
  def task(): TaskAttempt = {
    val executor = Option(SparkEnv.get).map(_.executorId).getOrElse("")
    Option(TaskContext.get()) match {
      case Some(context) =>
        TaskAttempt(context.stageId(), context.stageAttemptNumber(), context.partitionId(), context.attemptNumber(),
          context.taskAttemptId(), executor)
      case None => TaskAttempt(-1, 0, 0, 0, StandaloneAttempts.incrementAndGet(), executor)
    }
  }

  private val StandaloneAttempts = new java.util.concurrent.atomic.AtomicLong()
}
