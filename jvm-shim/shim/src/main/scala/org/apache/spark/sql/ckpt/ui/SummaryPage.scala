// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

import java.util.Locale

import scala.xml.{Node, Text}

import jakarta.servlet.http.HttpServletRequest

import org.apache.spark.ui.UIUtils

/** Distributions of durations and sizes over the completed checkpoints that are kept. */
private[ui] final class SummaryPage(parent: CheckpointTab)
    extends RunPage(parent, SummaryPage.Name, "Summary of checkpoints") {
  import SummaryPage._

  override protected def about(request: HttpServletRequest, row: RunRow): Seq[Node] = {
    val reports = parent.status.reports(row.run.runId).filter(_.isCompleted)
    if (reports.isEmpty) Cells.nothing("No checkpoint has completed yet.")
    else {
      val of = s"Completed checkpoints: the newest ${reports.size} of ${row.run.completed}"
      <p>{of}</p> ++ UIUtils.listingTable(Headers, line(reports, _), Figures, id = Some("summary"))
    }
  }

  private def line(reports: Seq[CheckpointReport], figure: Figure): Seq[Node] = {
    val spread = Distribution.of(reports.flatMap(figure.of(_)))
    val values = spread.toSeq.flatMap(all =>
      Seq(all.least, all.mean.round, all.most) ++ Percentiles.map(all.percentile))
    val cells = if (values.isEmpty) Seq.fill(Headers.size - 1)(Text("-")) else values.map(figure.show(_))
    <tr><td>{figure.name}</td>{values.zipAll(cells, -1L, Text("-")).map { case (value, cell) =>
      <td sorttable_customkey={value.toString}>{cell}</td>
    }}</tr>
  }
}

private[ui] object SummaryPage {
  val Name = "summary"

  private final case class Figure(name: String, of: CheckpointReport => Option[Long], show: Long => Seq[Node])

  private val Percentiles = Seq(50.0, 90.0, 99.0, 99.9)
  private val Headers = Seq("Figure", "Min", "Avg", "Max") ++
    Percentiles.map(p => "P" + "%.1f".formatLocal(Locale.ROOT, p).stripSuffix(".0"))

  private def spread(name: String, worst: Seq[Long] => Long)(report: CheckpointReport): Option[Long] =
    report.operators.flatMap(_.spread(name)).map(worst).maxOption

  private val millis = (value: Long) => Text(UIUtils.formatDuration(value))
  private val size = (value: Long) => Cells.size(Some(value))
  private val plain = (value: Long) => Text(value.toString)
  private val micros = (value: Long) => Text(Cells.micros(value))

  private val Figures = Seq(
    Figure("Duration", _.durationMs, millis),
    Figure("Until the last acknowledgement", _.acknowledgedMs, millis),
    Figure("Completing", _.completingMs, millis),
    Figure("Longest start delay", spread("start_delay_ms", _.last), millis),
    Figure("Longest restore", spread("restore_us", _.last), micros),
    Figure("Longest snapshot", spread("snapshot_us", _.last), micros),
    Figure("Longest write", spread("write_us", _.last), micros),
    Figure("Longest acknowledge", spread("acknowledge_us", _.last), micros),
    Figure("New size", _.newBytes, size),
    Figure("Full size", _.stateBytes, size),
    Figure("Rows", _.rows, plain),
    Figure("Chain length", _.chainLength, plain))
}
