// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import java.io.{ByteArrayOutputStream, OutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning
import org.apache.spark.sql.ckpt.common.{CheckpointFailure, Settings}
import org.apache.spark.sql.ckpt.compat.{OffsetLogs, StreamingPlans}
import org.apache.spark.sql.ckpt.logs.FencedLog
import org.apache.spark.sql.ckpt.meaning.QueryPlans
import org.apache.spark.sql.ckpt.protocol.{OperatorPlan, QueryMeaning, SourceOffset, Trigger}
import org.apache.spark.sql.ckpt.ui.CheckpointUI
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.checkpointing.HDFSMetadataLog
import org.apache.spark.sql.execution.streaming.operators.stateful.{StatefulOperator, StateStoreWriter}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec
import org.apache.spark.sql.execution.streaming.runtime.{IncrementalExecution, StreamExecution}

/**
 * The driver's knowledge of a running micro-batch: which subtasks must acknowledge its checkpoint, and which offsets it
 * reads up to. It is the content of the `trigger` message.
 */
private[driver] object RunningBatch extends Logging {

  /** The execution of a query that runs in this driver, in a session of the same shared state. */
  def find(session: SparkSession, queryId: UUID): Option[StreamExecution] =
    Option(session.sharedState.activeStreamingQueries.get(queryId))

  /** True for an execution whose batch in real-time mode has ended, if the state of the batch is ours. */
  def isInRealTime(execution: StreamExecution): Boolean =
    StreamingPlans.realTimeMs(execution.trigger).isDefined && Provider.isOurs(execution) &&
      Option(execution.lastExecution).exists(plan => operators(plan).nonEmpty)

  /**
   * The trigger message of a batch, or None if the query is not executing this batch now.
   *
   * @param isFirst true for the first batch of the run, whose message says what the state means
   */
  def trigger(execution: StreamExecution, batchId: Long, isFirst: Boolean): Option[Trigger] =
    Option(execution.lastExecution).filter(_.currentBatchId == batchId).map { plan =>
      val settings = plan.sparkSession.sessionState.conf.getAllConfs
      val location = execution.resolvedCheckpointRoot
      val offsets = execution.offsetLog.get(batchId)
      Trigger(
        execution.runId.toString,
        location,
        execution.id.toString,
        Option(execution.name),
        batchId,
        batchId + 1,
        plan.sparkSession.sessionState.conf.stateStoreCheckpointFormatVersion,
        plan.sparkSession.version,
        operators(plan),
        offsets.toSeq.flatMap(OffsetLogs.sources(_)).map { case (name, offset) => SourceOffset(name, offset) },
        offsets.map(textOf(execution.offsetLog, _)),
        settings.filter(_._1.startsWith(Settings.Prefix)),
        FileSystemSettings.of(location, plan.sparkSession.sessionState.newHadoopConf()),
        StreamingPlans.realTimeMs(execution.trigger),
        logEpoch(execution),
        CheckpointUI.wantsDetails(plan.sparkSession.sparkContext),
        if (isFirst) meaningOf(execution, plan) else None)
    }

  /** A query whose plan has no meaning runs as well; only its changes are not noticed. */
  private def meaningOf(execution: StreamExecution, plan: IncrementalExecution): Option[QueryMeaning] =
    try Some(QueryPlans.meaningOf(execution, plan))
    catch {
      case NonFatal(e) =>
        logWarning(s"cannot tell what the state of the query ${execution.id} means, so its changes are not noticed", e)
        None
    }

  /** Text of a batch's entry in the offset log, as this run has written it. */
  def offsetsOf(execution: StreamExecution, batchId: Long): Option[String] =
    execution.offsetLog.get(batchId).map(textOf(execution.offsetLog, _))

  private def operators(plan: IncrementalExecution): Seq[OperatorPlan] =
    StreamingPlans
      .collect(plan.executedPlan) { case writer: StateStoreWriter => writer }
      .sortBy(operatorId)
      .map { writer =>
        val info = writer.asInstanceOf[StatefulOperator].getStateInfo
        val format = writer match {
          case join: StreamingSymmetricHashJoinExec => Some(join.stateFormatVersion)
          case _ => None
        }
        OperatorPlan(info.operatorId, writer.shortName, StreamingPlans.storeNames(writer),
          parallelism(writer.asInstanceOf[SparkPlan], info.numPartitions), format)
      }

  private def operatorId(writer: StateStoreWriter): Long =
    writer.asInstanceOf[StatefulOperator].getStateInfo.operatorId

  /**
   * Number of tasks of the operator. `getStateInfo.numPartitions` is the shuffle setting, which overstates a global
   * aggregate or limit: those run as one task.
   */
  private def parallelism(plan: SparkPlan, shufflePartitions: Int): Int =
    plan.children.headOption.map(_.outputPartitioning) match {
      case None | Some(_: UnknownPartitioning) => shufflePartitions
      case Some(partitioning) if partitioning.numPartitions > 0 => partitioning.numPartitions
      case Some(_) => shufflePartitions
    }

  /** The epoch that the run's own writer of the offset log keeps to. `fileManager` is public in bytecode as well. */
  private def logEpoch(execution: StreamExecution): Option[Long] =
    classOf[HDFSMetadataLog[_]].getMethod("fileManager").invoke(execution.offsetLog) match {
      case ours: FencedLog => ours.logEpoch
      case _ => None
    }

  /**
   * Content of Spark's file for these offsets, which are still in memory. `serialize` is protected in Scala and public
   * in bytecode.
   */
  private def textOf[A <: AnyRef](log: HDFSMetadataLog[A], offsets: A): String = {
    val out = new ByteArrayOutputStream()
    classOf[HDFSMetadataLog[_]].getMethod("serialize", classOf[Object], classOf[OutputStream]).invoke(log, offsets, out)
    out.toString(UTF_8)
  }

  def noSuchQuery(job: String): CheckpointFailure = new CheckpointFailure(
    CheckpointFailure.NoSuchQuery,
    s"no query with run id $job is active in this driver: the run of this task has ended")
}
