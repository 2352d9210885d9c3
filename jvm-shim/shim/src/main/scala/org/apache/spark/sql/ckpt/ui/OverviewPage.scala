// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

import scala.xml.{Node, Text}

import jakarta.servlet.http.HttpServletRequest

import org.apache.spark.ui.{UIUtils, WebUIPage}

/** All queries of the application, one row for each run. */
private[ui] final class OverviewPage(parent: CheckpointTab) extends WebUIPage("") {
  import OverviewPage._

  override def render(request: HttpServletRequest): Seq[Node] =
    UIUtils.headerSparkPage(request, "Checkpoints", content(request), parent)

  private def content(request: HttpServletRequest): Seq[Node] = {
    val runs = parent.status.runs.map(new RunRow(_))
    if (runs.isEmpty) Cells.nothing("No query has triggered a checkpoint yet.")
    else StatusTable.render(request, "queries", parent.address(request, ""), runs, columns(request), "Started")
  }

  private def columns(request: HttpServletRequest): Seq[Column[RunRow]] = {
    val column = new Columns[RunRow]
    def count(name: String, of: RunStatus => Long) =
      column.sorted(name, row => Text(of(row.run).toString), row => of(row.run))
    def latest(name: String, of: RunRow => Option[CheckpointReport], show: CheckpointReport => Seq[Node]) =
      column.unsorted(name, row => of(row).fold(Cells.text(""))(show))
    Seq(
      column.sorted("Query",
        row => Cells.link(parent.address(request, QueryPage.Name, "run" -> row.run.runId), row.name), _.name),
      column.sorted("Run ID", row => Text(row.run.runId), _.run.runId),
      column.sorted("Status", row => Text(row.status), _.status),
      column.sorted("Started", row => Text(s"#${row.run.sequence}"), _.run.sequence,
        Some("Order in which the runs had their first checkpoint")),
      count("Triggered", _.triggered),
      column.sorted("In progress", _.inProgress, row => if (row.run.inProgress < 0) 0L else 1L),
      count("Completed", _.completed),
      count("Failed", _.failed),
      count("Restored", _.restored),
      latest("Latest completed", _.completed, Latest.completed),
      latest("Latest failed", _.failed, Latest.failed(_, MaxCause)),
      latest("Latest restore", _.restored, Latest.restored),
      latest("Latest savepoint", _.savepoint, Latest.savepoint),
      column.unsorted("Owner", row => row.start.fold(Cells.text(""))(Owners.all)))
  }
}

private[ui] object OverviewPage {

  /** Characters of a cause in a row. The page of the run has all of them. */
  private val MaxCause = 150
}

/** A run with its reports decoded. */
private[ui] final class RunRow(val run: RunStatus) {
  val completed: Option[CheckpointReport] = decoded(run.lastCompleted)
  val failed: Option[CheckpointReport] = decoded(run.lastFailed)
  val restored: Option[CheckpointReport] = decoded(run.lastRestored)
  val savepoint: Option[CheckpointReport] = decoded(run.lastSavepoint)
  val start: Option[StartReport] = StartReport.of(run.started)
  val last: CheckpointReport = CheckpointReport.of(run.lastReport)

  /** The query's name, or its id without one. */
  def name: String = if (last.queryName.nonEmpty) last.queryName else last.queryId
  def status: String = if (run.isFenced) "FENCED" else if (run.isActive) "RUNNING" else "ENDED"

  /** 0 or 1, with the acknowledgements so far. */
  def inProgress: Seq[Node] =
    if (run.inProgress < 0) Text("0")
    else if (!last.isInProgress) Text("1")
    else Text(s"1 (${last.acks.getOrElse(0L)}/${last.expected.getOrElse(0L)} acknowledged)")

  private def decoded(report: String): Option[CheckpointReport] =
    if (report.isEmpty) None else Some(CheckpointReport.of(report))
}

/** Newest checkpoints of each kind in a few words. */
private[ui] object Latest {
  def completed(report: CheckpointReport): Seq[Node] =
    Cells.join(subject(report), Text(" at "), Cells.time(report.completedMs), Text(" in "),
      Cells.duration(report.durationMs), Text(", "), Cells.size(report.stateBytes), Text(", "),
      Cells.number(report.rows), Text(" rows"))

  /** @param most characters of its cause */
  def failed(report: CheckpointReport, most: Int = Int.MaxValue): Seq[Node] = {
    val cause = if (report.cause.length > most) report.cause.take(most) + " \u2026" else report.cause
    Cells.join(Text(s"batch ${report.batchId} at "), Cells.time(report.failedMs), <br/>, Cells.long(cause))
  }

  def restored(report: CheckpointReport): Seq[Node] =
    Cells.join(subject(report), Text(operation(report)), Text(" at "), Cells.time(report.restoredMs), <br/>,
      Cells.long(report.path))

  private def operation(report: CheckpointReport): String =
    if (report.operation.isEmpty) "" else s", by spark-ckpt ${report.operation},"

  def savepoint(report: CheckpointReport): Seq[Node] =
    Cells.join(subject(report), Text(" at "), Cells.time(report.takenMs), <br/>, Cells.long(report.path))

  private def subject(report: CheckpointReport): Seq[Node] =
    Text(s"${report.id.getOrElse("-")}, batch ${report.batchId}")
}
