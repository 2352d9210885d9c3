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
package org.apache.spark.sql.ckpt.ui

import scala.xml.{Node, Text}

import jakarta.servlet.http.HttpServletRequest

import org.apache.spark.ui.{UIUtils, WebUIPage}

/** One checkpoint with its operators and subtasks. */
private[ui] final class CheckpointPage(parent: CheckpointTab) extends WebUIPage(CheckpointPage.Name) {

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
    val operators = if (report.operators.isEmpty) Nil else Cells.heading("Operators") ++
      UIUtils.listingTable(CheckpointPage.OperatorHeaders, operatorRow, report.operators, id = Some("operators"))
    val subtasks = report.subtasks
    if (subtasks.isEmpty) operators
    else {
      val acks = report.acks.getOrElse(0L)
      val title = if (acks > subtasks.size) s"Subtasks (last ${subtasks.size} of $acks)" else s"Subtasks ($acks)"
      val path = parent.address(request, CheckpointPage.Name, "key" -> key)
      val names = report.operators.map(operator => operator.operatorId -> operator.name).toMap
      operators ++ Cells.heading(title) ++
        StatusTable.render(request, "subtasks", path, subtasks, columns(names), "Acknowledged after")
    }
  }

  /** A column of figures is sorted by them, one of spreads by the maximum. */
  private def operatorRow(operator: OperatorReport): Seq[Node] = {
    def spread(name: String, show: Long => String) =
      (operator.spread(name).fold(-1L)(_.last), Cells.spread(operator.spread(name), show))
    def figure(value: Option[Long], show: Option[Long] => Seq[Node]) = (value.getOrElse(-1L), show(value))
    val figures = Seq(
      (operator.acks, Text(s"${operator.acks}/${operator.parallelism}")),
      spread("acknowledged_ms", UIUtils.formatDuration),
      spread("start_delay_ms", UIUtils.formatDuration),
      spread("snapshot_us", Cells.micros),
      spread("write_us", Cells.micros),
      figure(operator.newBytes, Cells.size),
      figure(operator.stateBytes, Cells.size),
      figure(operator.chainLength, Cells.number),
      figure(operator.rows, Cells.number))
    <tr>
      <td sorttable_customkey={operator.operatorId.toString}>{s"${operator.operatorId} ${operator.name}"}</td>
      <td>{operator.store}</td>
      {figures.map { case (key, cell) => <td sorttable_customkey={key.toString}>{cell}</td> }}
    </tr>
  }

  private def columns(names: Map[Long, String]): Seq[Column[SubtaskReport]] = {
    val column = new Columns[SubtaskReport]
    Seq(
      column.sorted("Operator", subtask => Text(s"${subtask.operatorId} ${names.getOrElse(subtask.operatorId, "")}"),
        _.operatorId),
      column.sorted("Store", subtask => Text(subtask.store), _.store),
      column.sorted("Partition", subtask => Text(subtask.partition.toString), _.partition),
      column.sorted("Executor", subtask => Cells.text(subtask.executor), _.executor),
      column.sorted("Acknowledged after", subtask => Cells.duration(Some(subtask.acknowledgedMs)), _.acknowledgedMs),
      column.sorted("Start delay", subtask => Cells.duration(Some(subtask.startDelayMs)), _.startDelayMs),
      column.sorted("Snapshot", subtask => Text(Cells.micros(subtask.snapshotUs)), _.snapshotUs),
      column.sorted("Write", subtask => Text(Cells.micros(subtask.writeUs)), _.writeUs),
      column.sorted("New size", subtask => Cells.size(Some(subtask.newBytes)), _.newBytes),
      column.sorted("Full size", subtask => Cells.size(subtask.stateBytes), _.stateBytes),
      column.sorted("Chain length", subtask => Cells.number(subtask.chainLength), _.chainLength),
      column.sorted("Rows", subtask => Text(subtask.rows.toString), _.rows))
  }
}

private[ui] object CheckpointPage {
  val Name = "checkpoint"

  private val Spread = "(min / avg / max)"
  val OperatorHeaders: Seq[String] = Seq("Operator", "Store", "Acknowledged", s"Acknowledged after $Spread",
    s"Start delay $Spread", s"Snapshot $Spread", s"Write $Spread", "New size", "Full size", "Chain length", "Rows")
}
