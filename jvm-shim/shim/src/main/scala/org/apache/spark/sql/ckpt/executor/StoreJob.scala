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

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.sql.ckpt.{CheckpointFailure, Message, StoreUsageFailure}
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.streaming.runtime.{MicroBatchExecution, StreamExecution}
import org.apache.spark.sql.execution.streaming.state.StateStoreId

/**
 * The job that a store belongs to, and what a request to the coordinator says of it and of the task that asks.
 *
 * @param ckptDirectory the directory of the job's state files, `<location>/ckpt`
 */
private[ckpt] sealed abstract class StoreJob(val id: StateStoreId, val ckptDirectory: Path) {

  /** A header with the fields that every request has. `version` is the version to read, or the one written. */
  def header(version: Long, batchId: Long): ObjectNode

  /** The batch that asks for this version of the state. */
  def batchOf(baseVersion: Long): Long

  /** What to throw if it cannot be told where a version of the state is. */
  def refusal(version: Long, cause: CheckpointFailure): Throwable = cause

  protected def common(job: String, operatorId: Long, store: String, partition: Int, version: Long): ObjectNode =
    Message.newHeader()
      .put("job", job)
      .put("operator_id", operatorId)
      .put("store", store)
      .put("partition", partition)
      .put("version", version)
}

/** The stores of a streaming query: one job is one run of it. */
private[ckpt] final class QueryJob(id: StateStoreId, val runId: String, queryId: String)
    extends StoreJob(id, StoreJob.directoryOfQuery(id)) {

  override def header(version: Long, batchId: Long): ObjectNode =
    common(runId, id.operatorId, id.storeName, id.partitionId, version)
      .put("query_id", queryId)
      .put("batch_id", batchId)

  override def batchOf(baseVersion: Long): Long =
    Option(TaskContext.get())
      .flatMap(context => Option(context.getLocalProperty(MicroBatchExecution.BATCH_ID_KEY)))
      .map(_.toLong)
      .getOrElse(baseVersion)
}

/** A store of a query that does not run here: it can only be read, from the checkpoint directory alone. */
private[ckpt] final class ReaderJob(id: StateStoreId)
    extends StoreJob(id, StoreJob.directoryOfQuery(id)) {

  override def header(version: Long, batchId: Long): ObjectNode =
    throw new StoreUsageFailure(s"$id is opened by no running query: its state can be read, and not be changed")

  override def batchOf(baseVersion: Long): Long = baseVersion
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

  override def header(version: Long, batchId: Long): ObjectNode = {
    val header = common(job, id.operatorId, id.storeName, 0, version).put("batch_id", batchId)
    val trigger = header.putObject("standalone")
    trigger
      .put("job", job)
      .put("location", location)
      .put("query_id", StandaloneJob.QueryId)
      .putNull("query_name")
    trigger
      .put("batch_id", batchId)
      .put("version", batchId + 1)
      .put("checkpoint_format", 1)
      .put("spark_version", org.apache.spark.SPARK_VERSION)
    val operator = trigger.putArray("operators").addObject()
    operator
      .put("operator_id", id.operatorId)
      .put("name", "standalone")
      .put("parallelism", 1)
      .putNull("state_format_version")
    operator.putArray("stores").add(id.storeName)
    trigger.putArray("sources")
    val ours = trigger.putObject("settings")
    settings.foreach { case (key, value) => ours.put(key, value) }
    trigger.putObject("hadoop")
    header
  }

  override def batchOf(baseVersion: Long): Long = baseVersion
}

private[ckpt] object StandaloneJob {
  val QueryId = "00000000-0000-0000-0000-000000000000"

  private val NotThere = Set("VersionNotFoundError", "IncompleteCheckpointError")
}

private[ckpt] object StoreJob {

  /**
   * @param runId    of the provider; that of no query, if a reader of state made it
   * @param settings ours
   */
  def of(id: StateStoreId, runId: String, settings: Map[String, String], hadoopConf: Configuration): StoreJob =
    queryOfTask match {
      case Some(queryId) => new QueryJob(id, runId, queryId)
      case None if DirectoryLocator.hasCheckpoints(new StateFiles(directoryOfQuery(id), hadoopConf)) => new ReaderJob(id)
      case None => new StandaloneJob(id, settings)
    }

  private def queryOfTask: Option[String] =
    for {
      context <- Option(TaskContext.get())
      _ <- Option(context.getLocalProperty(MicroBatchExecution.BATCH_ID_KEY))
      queryId <- Option(context.getLocalProperty(StreamExecution.QUERY_ID_KEY))
    } yield queryId

  /** `<location>/ckpt`, beside `<location>/state`. */
  def directoryOfQuery(id: StateStoreId): Path = new Path(new Path(id.checkpointRootLocation).getParent, "ckpt")

  /** The attempt that asks, as the coordinator's authorisation knows it. */
  def putTask(header: ObjectNode): Unit = {
    val task = header.putObject("task")
    val executor = Option(SparkEnv.get).map(_.executorId).getOrElse("")
    Option(TaskContext.get()) match {
      case Some(context) =>
        task
          .put("stage_id", context.stageId())
          .put("stage_attempt", context.stageAttemptNumber())
          .put("partition", context.partitionId())
          .put("attempt_number", context.attemptNumber())
          .put("task_attempt_id", context.taskAttemptId())
          .put("executor", executor)
      case None =>
        task
          .put("stage_id", -1)
          .put("stage_attempt", 0)
          .put("partition", 0)
          .put("attempt_number", 0)
          .put("task_attempt_id", StandaloneAttempts.incrementAndGet())
          .put("executor", executor)
    }
  }

  private val StandaloneAttempts = new java.util.concurrent.atomic.AtomicLong()
}
