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

/** Checkpoints of one run of a query. */
private[ui] final class QueryPage(parent: CheckpointTab) extends WebUIPage(QueryPage.Name) {

  override def render(request: HttpServletRequest): Seq[Node] =
    UIUtils.headerSparkPage(request, "Checkpoints of a query", content(request), parent)

  private def content(request: HttpServletRequest): Seq[Node] =
    Option(request.getParameter("run")).flatMap(parent.status.run) match {
      case None => Cells.nothing("This run has no checkpoints, or too many runs have followed it.")
      case Some(run) => overview(new RunRow(run)) ++ history(request, run)
    }

  private def overview(row: RunRow): Seq[Node] = Cells.facts(
    "Query" -> Text(row.name),
    "Query ID" -> Text(row.last.queryId),
    "Run ID" -> Text(row.run.runId),
    "Status" -> Text(row.status),
    "Generation" -> Cells.number(row.last.generation),
    "Triggered" -> Text(row.run.triggered.toString),
    "In progress" -> Text(if (row.run.inProgress < 0) "0" else "1"),
    "Completed" -> Text(row.run.completed.toString),
    "Failed" -> Text(row.run.failed.toString),
    "Restored" -> Text(row.run.restored.toString),
    "Latest completed" -> row.completed.fold(Cells.text(""))(Latest.completed),
    "Latest failed" -> row.failed.fold(Cells.text(""))(Latest.failed),
    "Latest restore" -> row.restored.fold(Cells.text(""))(Latest.restored))

  private def history(request: HttpServletRequest, run: RunStatus): Seq[Node] = {
    val rows = parent.status.checkpoints(run.runId).map(HistoryRow.of)
    if (rows.isEmpty) Nil
    else {
      val path = parent.address(request, QueryPage.Name, "run" -> run.runId)
      Cells.heading("History") ++ StatusTable.render(request, "history", path, rows, columns(request), "Batch")
    }
  }

  private def columns(request: HttpServletRequest): Seq[Column[HistoryRow]] = {
    val column = new Columns[HistoryRow]
    def figure(name: String, show: Option[Long] => Seq[Node], of: CheckpointReport => Option[Long]) =
      column.sorted(name, row => show(of(row.report)), row => of(row.report))
    Seq(
      column.sorted("ID", row => Cells.link(address(request, row), row.report.id.fold("details")(_.toString)),
        _.report.id),
      column.sorted("Batch", row => Text(row.report.batchId.toString), _.number),
      column.sorted("Status", row => Text(HistoryRow.label(row.report)), row => HistoryRow.label(row.report)),
      column.sorted("Acknowledged", row => Cells.acknowledged(row.report), _.report.acks,
        Some("Stores of subtasks that have acknowledged, and all of them")),
      figure("Triggered", Cells.time, _.triggeredMs),
      figure("Duration", Cells.duration, _.durationMs),
      figure("New size", Cells.size, _.newBytes),
      figure("Full size", Cells.size, _.stateBytes),
      figure("Rows", Cells.number, _.rows),
      figure("Chain length", Cells.number, _.chainLength),
      column.unsorted("Cause", row => Cells.long(row.report.cause)))
  }

  private def address(request: HttpServletRequest, row: HistoryRow): String =
    parent.address(request, CheckpointPage.Name, "key" -> row.key)
}

private[ui] object QueryPage {
  val Name = "query"
}

/** A checkpoint in the history of its run. */
private[ui] final case class HistoryRow(key: String, number: Long, report: CheckpointReport)

private[ui] object HistoryRow {
  def of(status: CheckpointStatus): HistoryRow =
    HistoryRow(status.key, status.number, CheckpointReport.of(status.report))

  /** Only a checkpoint in progress is still as it was triggered. */
  def label(report: CheckpointReport): String = report.status match {
    case CheckpointReport.Triggered => "IN PROGRESS"
    case other => other.toUpperCase(java.util.Locale.ROOT)
  }
}
