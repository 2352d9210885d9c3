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
package org.apache.spark.sql.ckpt.executor

import scala.concurrent.duration.FiniteDuration

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.sql.ckpt.{CheckpointFailure, StoreUsageFailure}
import org.apache.spark.sql.ckpt.protocol.{OperatorPlan, StoreHeader, TaskAttempt, Trigger}
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.streaming.runtime.{MicroBatchExecution, StreamExecution}
import org.apache.spark.sql.execution.streaming.state.StateStoreId

/**
 * The job that a store belongs to, and what a request to the coordinator says of it and of the task that asks.
 *
 * @param ckptDirectory the directory of the job's state files, `<location>/ckpt`
 */
private[ckpt] sealed abstract class StoreJob(val id: StateStoreId, val ckptDirectory: Path) {

  /**
   * A header with the fields that every request has.
   *
   * @param version     to read, or the one written
   * @param baseVersion that the batch starts from. Spark counts versions so that it is the number of the batch. The
   *                    thread's local properties have that too, but not for certain: a thread that a foreachBatch
   *                    function starts need not have any, and one of a pool may have those of an earlier batch
   */
  def header(version: Long, baseVersion: Long): StoreHeader

  /** Error to throw if a version of the state cannot be located. */
  def refusal(version: Long, cause: CheckpointFailure): Throwable = cause
}

/** The stores of a streaming query: one job is one run of it. */
private[ckpt] final class QueryJob(id: StateStoreId, val runId: String)
    extends StoreJob(id, StoreJob.directoryOfQuery(id)) {

  override def header(version: Long, baseVersion: Long): StoreHeader =
    StoreHeader(runId, id.operatorId, id.storeName, id.partitionId, version, baseVersion)
}

/** A store of a query that does not run here: it can only be read, from the checkpoint directory alone. */
private[ckpt] final class ReaderJob(id: StateStoreId)
    extends StoreJob(id, StoreJob.directoryOfQuery(id)) {

  override def header(version: Long, baseVersion: Long): StoreHeader =
    throw new StoreUsageFailure(s"$id is opened by no running query: its state can be read, and not be changed")
}

/** A store that no query stands behind is a job of one subtask with a directory of its own. */
private[ckpt] final class StandaloneJob(id: StateStoreId, settings: Map[String, String])
    extends StoreJob(id, new Path(id.storeCheckpointLocation(), "ckpt")) {

  /** Spark's error for a version that is not there (yet): who uses a store without a query knows no other. */
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
      Some(Nil),
      offsetLog = None,
      settings,
      hadoop = Nil)
    StoreHeader(job, id.operatorId, id.storeName, 0, version, baseVersion, Some(trigger))
  }
}

private[ckpt] object StandaloneJob {
  val QueryId = "00000000-0000-0000-0000-000000000000"

  private val NotThere = Set("VersionNotFoundError", "IncompleteCheckpointError")
}

private[ckpt] object StoreJob {

  /**
   * The job of a store. A task that does not say that it belongs to a query may do so all the same: a foreachBatch
   * function can start jobs on threads that lack Spark's local properties. Then the driver is asked.
   *
   * @param runId    of the provider; that of no query, if a reader of state made it, and null without any
   * @param settings ours
   * @param patience how long the driver may take to answer
   * @throws CheckpointFailure if the driver cannot be asked
   */
  def of(
      id: StateStoreId,
      runId: String,
      settings: Map[String, String],
      hadoopConf: Configuration,
      coordinator: CoordinatorClient,
      patience: FiniteDuration): StoreJob =
    if (isTaskOfQuery || (runId != null && coordinator.isActive(runId, patience))) new QueryJob(id, runId)
    else if (DirectoryLocator.hasCheckpoints(new StateFiles(directoryOfQuery(id), hadoopConf))) new ReaderJob(id)
    else new StandaloneJob(id, settings)

  private def isTaskOfQuery: Boolean = Option(TaskContext.get()).exists { context =>
    context.getLocalProperty(MicroBatchExecution.BATCH_ID_KEY) != null &&
      context.getLocalProperty(StreamExecution.QUERY_ID_KEY) != null
  }

  /** `<location>/ckpt`, beside `<location>/state`. */
  def directoryOfQuery(id: StateStoreId): Path = new Path(new Path(id.checkpointRootLocation).getParent, "ckpt")

  /** The attempt that asks. */
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
