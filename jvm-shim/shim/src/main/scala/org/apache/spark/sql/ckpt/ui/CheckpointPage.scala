// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

import scala.xml.{Node, Text}

import jakarta.servlet.http.HttpServletRequest

import org.apache.spark.ui.{UIUtils, WebUIPage}
import org.apache.spark.util.Utils

/** One checkpoint with its operators and subtasks. */
private[ui] final class CheckpointPage(parent: CheckpointTab) extends WebUIPage(CheckpointPage.Name) {
  import CheckpointPage._

  override def render(request: HttpServletRequest): Seq[Node] =
    UIUtils.headerSparkPage(request, "Details of a checkpoint", content(request), parent)

  private def content(request: HttpServletRequest): Seq[Node] =
    Option(request.getParameter("key")).flatMap(parent.status.checkpoint) match {
      case None => Cells.nothing("There is no such checkpoint, or too many have followed it.")
      case Some(status) =>
        val details = parent.status.details(status.key).map(found => CheckpointReport.of(found.report))
        val report = details.getOrElse(CheckpointReport.of(status.report))
        overview(request, status, report) ++ tables(request, status.key, report) ++
          (if (details.isEmpty) withoutDetails(report) else Nil)
    }

  private def overview(request: HttpServletRequest, status: CheckpointStatus, report: CheckpointReport): Seq[Node] = {
    val name = if (report.queryName.nonEmpty) report.queryName else report.queryId
    val failures = report.failures.map { case (reason, times) => s"$reason ($times)" }.mkString(", ")
    Cells.facts(
      "Query" -> Cells.link(parent.address(request, QueryPage.Name, "run" -> status.runId), name),
      "ID" -> Cells.number(report.id),
      "Batch" -> Text(report.batchId.toString),
      "Status" -> Text(HistoryRow.label(report)),
      "Acknowledged" -> Cells.acknowledged(report),
      "Triggered" -> Cells.time(report.triggeredMs),
      "Completed" -> Cells.time(report.completedMs),
      "Duration" -> Cells.duration(report.durationMs),
      "Completing" -> Cells.duration(report.completingMs),
      "New size" -> Cells.size(report.newBytes),
      "Full size" -> Cells.size(report.stateBytes),
      "Rows" -> Cells.number(report.rows),
      "Chain length" -> Cells.number(report.chainLength),
      "Failures" -> Cells.text(failures),
      "Cause" -> Cells.long(report.cause))
  }

  private def withoutDetails(report: CheckpointReport): Seq[Node] =
    if (report.isInProgress) Cells.nothing("Operators and subtasks follow at its end.")
    else Cells.nothing("Subtasks are kept of the newest checkpoints only.")

  private def tables(request: HttpServletRequest, key: String, report: CheckpointReport): Seq[Node] = {
    val operators = if (report.operators.isEmpty) Nil else {
      Cells.heading("Operators") ++
        UIUtils.listingTable(OperatorHeaders, operatorRow(report, _), report.operators, id = Some("operators")) ++
        Cells.heading("Subtasks of each operator: min / avg / max") ++
        UIUtils.listingTable(SpreadHeaders, spreadRow, report.operators, id = Some("spreads"))
    }
    val subtasks = report.subtasks
    if (subtasks.isEmpty) operators
    else {
      val acks = report.acks.getOrElse(0L)
      val title = if (acks > subtasks.size) s"Subtasks (last ${subtasks.size} of $acks)" else s"Subtasks ($acks)"
      val path = parent.address(request, CheckpointPage.Name, "key" -> key)
      operators ++ Cells.heading(title) ++
        StatusTable.render(request, "subtasks", path, subtasks, columns(report), "End to end")
    }
  }

  private def operatorRow(report: CheckpointReport, operator: OperatorReport): Seq[Node] = {
    def figure(value: Option[Long], show: Option[Long] => Seq[Node]) = (value.getOrElse(-1L), show(value))
    val lastAck =
      for (from <- report.triggeredMs; after <- operator.spread("acknowledged_ms")) yield from + after.last
    row(operator, Seq(
      (operator.acks, Text(s"${operator.acks}/${operator.parallelism}")),
      figure(lastAck, Cells.time),
      figure(operator.newBytes, Cells.size),
      figure(operator.stateBytes, Cells.size),
      figure(operator.chainLength, Cells.number),
      figure(operator.rows, Cells.number)))
  }

  /** Spreads are sorted by their maximum. */
  private def spreadRow(operator: OperatorReport): Seq[Node] =
    row(operator, Spreads.map { case (_, name, show) =>
      val spread = operator.spread(name)
      (spread.fold(-1L)(_.last), Cells.spread(spread, show))
    })

  /** @param figures their keys for sorting, and cells */
  private def row(operator: OperatorReport, figures: Seq[(Long, Seq[Node])]): Seq[Node] =
    <tr>
      <td sorttable_customkey={operator.operatorId.toString}>{s"${operator.operatorId} ${operator.name}"}</td>
      <td>{operator.store}</td>
      {figures.map { case (key, cell) => <td sorttable_customkey={key.toString}>{cell}</td> }}
    </tr>

  private def columns(report: CheckpointReport): Seq[Column[SubtaskReport]] = {
    val names = report.operators.map(operator => operator.operatorId -> operator.name).toMap
    val column = new Columns[SubtaskReport]
    Seq(
      column.sorted("Operator", subtask => Text(s"${subtask.operatorId} ${names.getOrElse(subtask.operatorId, "")}"),
        _.operatorId),
      column.sorted("Store", subtask => Text(subtask.store), _.store),
      column.sorted("Partition", subtask => Text(subtask.partition.toString), _.partition),
      column.sorted("Executor", subtask => Cells.text(subtask.executor), _.executor),
      column.sorted("Acknowledged", subtask => Cells.time(report.triggeredMs.map(_ + subtask.acknowledgedMs)),
        _.acknowledgedMs),
      column.sorted("End to end", subtask => Cells.duration(Some(subtask.acknowledgedMs)), _.acknowledgedMs),
      column.sorted("Start delay", subtask => Cells.duration(Some(subtask.startDelayMs)), _.startDelayMs),
      column.sorted("Restore", subtask => Cells.phase(subtask.restoreUs), _.restoreUs),
      column.sorted("Snapshot", subtask => Text(Cells.micros(subtask.snapshotUs)), _.snapshotUs),
      column.sorted("Write", subtask => Text(Cells.micros(subtask.writeUs)), _.writeUs),
      column.sorted("Acknowledge", subtask => Cells.phase(subtask.acknowledgeUs), _.acknowledgeUs),
      column.sorted("New size", subtask => Cells.size(Some(subtask.newBytes)), _.newBytes),
      column.sorted("Full size", subtask => Cells.size(subtask.stateBytes), _.stateBytes),
      column.sorted("Chain length", subtask => Cells.number(subtask.chainLength), _.chainLength),
      column.sorted("Rows", subtask => Text(subtask.rows.toString), _.rows))
  }
}

private[ui] object CheckpointPage {
  val Name = "checkpoint"

  private val OperatorHeaders = Seq(
    "Operator", "Store", "Acknowledged", "Last acknowledgement", "New size", "Full size", "Chain length", "Rows")

  /** Header, name in the report, and form of what differs between the subtasks of an operator. */
  private val Spreads = Seq[(String, String, Long => String)](
    ("End to end", "acknowledged_ms", UIUtils.formatDuration),
    ("Start delay", "start_delay_ms", UIUtils.formatDuration),
    ("Restore", "restore_us", Cells.micros),
    ("Snapshot", "snapshot_us", Cells.micros),
    ("Write", "write_us", Cells.micros),
    ("Acknowledge", "acknowledge_us", Cells.micros),
    ("New size", "subtask_new_bytes", Utils.bytesToString),
    ("Full size", "subtask_state_bytes", Utils.bytesToString),
    ("Rows", "subtask_rows", _.toString))

  private val SpreadHeaders = Seq("Operator", "Store") ++ Spreads.map(_._1)
}
