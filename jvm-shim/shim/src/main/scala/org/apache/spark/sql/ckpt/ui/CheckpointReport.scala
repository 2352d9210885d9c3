// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.ckpt.protocol.Message

/** Fields of a report (docs/protocol.md, section 1.7). An absent number is None, an absent text empty. */
private[ckpt] final class CheckpointReport(json: JsonNode) {
  def status: String = text("status")
  def runId: String = text("run_id")
  def queryId: String = text("query_id")
  def queryName: String = text("query_name")
  def generation: Option[Long] = number("generation")
  def batchId: Long = number("batch_id").getOrElse(-1)
  def version: Long = number("version").getOrElse(-1)
  def id: Option[Long] = number("id")
  def triggeredMs: Option[Long] = number("triggered_ms")
  def completedMs: Option[Long] = number("completed_ms")
  def failedMs: Option[Long] = number("failed_ms")
  def takenMs: Option[Long] = number("taken_ms")
  def restoredMs: Option[Long] = number("restored_ms")
  def acks: Option[Long] = number("acks")
  def expected: Option[Long] = number("expected")
  def stateBytes: Option[Long] = number("state_bytes")
  def newBytes: Option[Long] = number("new_bytes")
  def rows: Option[Long] = number("rows")
  def chainLength: Option[Long] = number("chain_length")
  def reason: String = text("reason")
  def cause: String = text("cause")
  def path: String = text("path")

  /** The command whose checkpoint it is, such as `evolve`; empty for that of a batch. */
  def operation: String = text("operation")
  def completingMs: Option[Long] = number("completing_ms")
  def filesToDelete: Option[Long] = number("files_to_delete")
  def filesLeftBehind: Option[Long] = number("files_left_behind")

  /** From the trigger to the last acknowledgement, or until it was aborted. */
  def acknowledgedMs: Option[Long] = number("duration_ms")

  /** Time of the last acknowledgement so far; None without one. */
  def lastAckMs: Option[Long] = number("last_ack_ms").orElse(
    for (from <- triggeredMs; after <- operators.flatMap(_.spread("acknowledged_ms")).map(_.last).maxOption)
      yield from + after)

  /** From the trigger to the end: the checkpoint is durable, or was aborted. */
  def durationMs: Option[Long] = acknowledgedMs.map(_ + completingMs.getOrElse(0L))

  /** Failures that the checkpoint survived or died of, by reason. */
  def failures: Seq[(String, Long)] =
    json.path("failures").properties().asScala.toSeq.map(entry => (entry.getKey, entry.getValue.asLong()))

  def operators: Seq[OperatorReport] = json.path("operators").elements().asScala.map(new OperatorReport(_)).toSeq
  def subtasks: Seq[SubtaskReport] = json.path("subtasks").elements().asScala.map(new SubtaskReport(_)).toSeq

  def isInProgress: Boolean = status == CheckpointReport.Triggered || status == CheckpointReport.Progress
  def isCompleted: Boolean = status == CheckpointReport.Completed
  def isFailed: Boolean = status == CheckpointReport.Failed

  /** The report without operators and subtasks. */
  def brief: String = without("operators", "subtasks")

  /** The report without subtasks, which may have many. */
  def summary: String = without("subtasks")

  /** The whole report. */
  def whole: String = json.toString

  /** The report of the same checkpoint after its application has ended. */
  def ended(timeMs: Long): CheckpointReport = {
    val fields = json.deepCopy[ObjectNode]()
    fields.put("status", CheckpointReport.Failed).put("failed_ms", timeMs).put("cause", "the application has ended")
    new CheckpointReport(fields)
  }

  private def without(fields: String*): String = json match {
    case all: ObjectNode => Message.newHeader().setAll[ObjectNode](all).without[ObjectNode](fields.asJava).toString
    case other => other.toString
  }

  private def number(name: String): Option[Long] = CheckpointReport.number(json.path(name))
  private def text(name: String): String = json.path(name).asText("")
}

/** Summary of a store of an operator over its acknowledged subtasks. */
private[ui] final class OperatorReport(json: JsonNode) {
  def operatorId: Long = json.path("operator_id").asLong()
  def name: String = json.path("name").asText("")
  def store: String = json.path("store").asText("")
  def parallelism: Long = json.path("parallelism").asLong()
  def acks: Long = json.path("acks").asLong()
  def rows: Option[Long] = number("rows")
  def newBytes: Option[Long] = number("new_bytes")
  def stateBytes: Option[Long] = number("state_bytes")
  def chainLength: Option[Long] = number("chain_length")

  /** Minimum, mean and maximum of a figure; None without acknowledged subtasks. */
  def spread(figure: String): Option[Seq[Long]] = {
    val values = json.path(figure).elements().asScala.map(_.asLong()).toSeq
    if (values.isEmpty) None else Some(values)
  }

  private def number(name: String): Option[Long] = CheckpointReport.number(json.path(name))
}

/** A store of a subtask that has acknowledged. */
private[ui] final class SubtaskReport(json: JsonNode) {
  def operatorId: Long = json.path(0).asLong()
  def store: String = json.path(1).asText("")
  def partition: Long = json.path(2).asLong()
  def executor: String = json.path(3).asText("")
  def acknowledgedMs: Long = json.path(4).asLong()
  def startDelayMs: Long = json.path(5).asLong()
  def snapshotUs: Long = json.path(6).asLong()
  def writeUs: Long = json.path(7).asLong()
  def newBytes: Long = json.path(8).asLong()
  def stateBytes: Option[Long] = CheckpointReport.number(json.path(9))
  def chainLength: Option[Long] = CheckpointReport.number(json.path(10))
  def rows: Long = json.path(11).asLong()

  /** Time to load state for the batch; None if the store had it in memory. */
  def restoreUs: Option[Long] = CheckpointReport.number(json.path(12))

  /** From the arrival of the acknowledgement to its answer. */
  def acknowledgeUs: Option[Long] = CheckpointReport.number(json.path(13))
}

private[ckpt] object CheckpointReport {
  val Started = "started"
  val Savepoint = "savepoint"
  val Progress = "progress"
  val Triggered = "triggered"
  val Completed = "completed"
  val Failed = "failed"
  val Restored = "restored"

  /** Reason of a checkpoint that failed because another driver has taken over. */
  val Fenced = "fenced"

  def of(text: String): CheckpointReport = new CheckpointReport(Message.mapper.readTree(text))

  private[ui] def number(value: JsonNode): Option[Long] = if (value.isNumber) Some(value.asLong()) else None
}
