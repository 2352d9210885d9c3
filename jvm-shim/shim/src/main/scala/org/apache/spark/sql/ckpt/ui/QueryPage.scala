// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

import scala.xml.{Node, Text}

import jakarta.servlet.http.HttpServletRequest

/** Checkpoints of one run of a query. */
private[ui] final class QueryPage(parent: CheckpointTab)
    extends RunPage(parent, QueryPage.Name, "Checkpoints of a query") {

  override protected def about(request: HttpServletRequest, row: RunRow): Seq[Node] =
    overview(row) ++ history(request, row.run)

  private def overview(row: RunRow): Seq[Node] = Cells.facts(
    "Query ID" -> Text(row.last.queryId),
    "Status" -> Text(row.status),
    "Owner" -> row.start.fold(Cells.text(""))(start => Owners.text(start.claim)),
    "Fenced drivers" -> Owners.fenced(row.start.fold(Seq.empty[Claim])(_.fenced)),
    "Coordinator" -> row.start.fold(Cells.text(""))(start => Cells.text(Owners.coordinator(start.hung))),
    "Triggered" -> Text(row.run.triggered.toString),
    "In progress" -> row.inProgress,
    "Completed" -> Text(row.run.completed.toString),
    "Failed" -> Text(row.run.failed.toString),
    "Restored" -> Text(row.run.restored.toString),
    "Latest completed" -> row.completed.fold(Cells.text(""))(Latest.completed),
    "Latest failed" -> row.failed.fold(Cells.text(""))(Latest.failed(_)),
    "Latest restore" -> row.restored.fold(Cells.text(""))(Latest.restored),
    "Latest savepoint" -> row.savepoint.fold(Cells.text(""))(Latest.savepoint))

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
      figure("Last acknowledgement", Cells.time, _.lastAckMs),
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

  def label(report: CheckpointReport): String =
    if (report.isInProgress) "IN PROGRESS" else report.status.toUpperCase(java.util.Locale.ROOT)
}
