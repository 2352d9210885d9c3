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
package org.apache.spark.sql.ckpt.driver

import java.io.{ByteArrayOutputStream, OutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning
import org.apache.spark.sql.ckpt.{CheckpointFailure, Message, Settings}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.StreamingQueryPlanTraverseHelper
import org.apache.spark.sql.execution.streaming.checkpointing.{HDFSMetadataLog, OffsetMap, OffsetSeqBase, OffsetSeqLog}
import org.apache.spark.sql.execution.streaming.operators.stateful.{StatefulOperator, StateStoreWriter}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec
import org.apache.spark.sql.execution.streaming.runtime.{IncrementalExecution, StreamExecution}

/**
 * What the driver knows of a running micro-batch: which subtasks must acknowledge its checkpoint, and which offsets it
 * reads up to. It is the content of the `trigger` message.
 */
private[driver] object RunningBatch {

  /** The execution of a query that runs in this driver. */
  def find(session: SparkSession, queryId: UUID): Option[StreamExecution] =
    Option(session.sharedState.activeStreamingQueries.get(queryId))

  /** The header of the trigger message of a batch, or None if the query is not executing this batch now. */
  def trigger(execution: StreamExecution, batchId: Long): Option[ObjectNode] =
    Option(execution.lastExecution).filter(_.currentBatchId == batchId).map { plan =>
      val settings = plan.sparkSession.sessionState.conf.getAllConfs
      val location = execution.resolvedCheckpointRoot
      val header = Message.newHeader()
      header
        .put("job", execution.runId.toString)
        .put("location", location)
        .put("query_id", execution.id.toString)
        .put("query_name", execution.name)
        .put("batch_id", batchId)
        .put("version", batchId + 1)
        .put("checkpoint_format", plan.sparkSession.sessionState.conf.stateStoreCheckpointFormatVersion)
        .put("spark_version", plan.sparkSession.version)
      putOperators(header, plan)
      execution.offsetLog.get(batchId).foreach(putOffsets(header, execution.offsetLog, _))
      val ours = header.putObject("settings")
      settings.foreach { case (key, value) => if (key.startsWith(Settings.Prefix)) ours.put(key, value) }
      putFileSystem(header, plan, location)
      header
    }

  private def putOperators(header: ObjectNode, plan: IncrementalExecution): Unit = {
    val operators = header.putArray("operators")
    // A cached part of a plan hides its operators from an ordinary traversal.
    StreamingQueryPlanTraverseHelper
      .collectFromUnfoldedPlan(plan.executedPlan) { case writer: StateStoreWriter => writer }
      .sortBy(operatorId)
      .foreach { writer =>
        val info = writer.asInstanceOf[StatefulOperator].getStateInfo
        val operator = operators.addObject()
        operator.put("operator_id", info.operatorId)
        operator.put("name", writer.shortName)
        writer.stateStoreNames.foreach(operator.withArrayProperty("stores").add)
        operator.put("parallelism", parallelism(writer.asInstanceOf[SparkPlan], info.numPartitions))
        writer match {
          case join: StreamingSymmetricHashJoinExec => operator.put("state_format_version", join.stateFormatVersion)
          case _ => operator.putNull("state_format_version")
        }
      }
  }

  private def operatorId(writer: StateStoreWriter): Long =
    writer.asInstanceOf[StatefulOperator].getStateInfo.operatorId

  /**
   * How many tasks the operator runs as. `getStateInfo.numPartitions` is the shuffle setting, which overstates a global
   * aggregate or limit: those run as one task.
   */
  private def parallelism(plan: SparkPlan, shufflePartitions: Int): Int =
    plan.children.headOption.map(_.outputPartitioning) match {
      case None | Some(_: UnknownPartitioning) => shufflePartitions
      case Some(partitioning) if partitioning.numPartitions > 0 => partitioning.numPartitions
      case Some(_) => shufflePartitions
    }

  private def putOffsets(header: ObjectNode, log: OffsetSeqLog, offsets: OffsetSeqBase): Unit = {
    val sources = header.putArray("sources")
    def put(name: String, offset: Option[String]): Unit = {
      val source = sources.addObject()
      source.put("name", name)
      source.put("offset", offset.orNull)
    }
    offsets match {
      case named: OffsetMap =>
        named.offsetsMap.toSeq.sortBy(_._1).foreach { case (name, offset) => put(name, offset.map(_.json())) }
      case ordered =>
        ordered.offsets.zipWithIndex.foreach { case (offset, i) => put(i.toString, offset.map(_.json())) }
    }
    header.put("offset_log", textOf(log, offsets))
  }

  /**
   * What stands in the file that Spark has written for these offsets, which it still has in memory. `serialize` is
   * protected in Scala, and public in bytecode.
   */
  private def textOf(log: OffsetSeqLog, offsets: OffsetSeqBase): String = {
    val out = new ByteArrayOutputStream()
    classOf[HDFSMetadataLog[_]].getMethod("serialize", classOf[Object], classOf[OutputStream]).invoke(log, offsets, out)
    out.toString(UTF_8)
  }

  private def putFileSystem(header: ObjectNode, plan: IncrementalExecution, location: String): Unit = {
    val target = header.putObject("hadoop")
    FileSystemSettings.of(location, plan.sparkSession.sessionState.newHadoopConf()).foreach { case (key, value) =>
      target.put(key, value)
    }
  }

  def noSuchQuery(queryId: String, job: String): CheckpointFailure = new CheckpointFailure(
    CheckpointFailure.NoSuchQuery,
    s"query $queryId (run $job) is not active in this driver: the task belongs to a run that has ended")
}
