// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

import scala.xml.{Node, Text}

import jakarta.servlet.http.HttpServletRequest

import org.apache.spark.util.Utils

/** How large the state is, how it is spread over partitions, and how it has grown. */
private[ui] final class StatePage(parent: CheckpointTab)
    extends RunPage(parent, StatePage.Name, "State of a query") {
  import StatePage._

  override protected def about(request: HttpServletRequest, row: RunRow): Seq[Node] = {
    val completed = parent.status.checkpoints(row.run.runId).map(HistoryRow.of).filter(_.report.isCompleted)
    completed.lastOption match {
      case None => Cells.nothing("No checkpoint has completed yet.")
      case Some(newest) =>
        val details = parent.status.details(newest.key).map(found => CheckpointReport.of(found.report))
        val report = details.getOrElse(newest.report)
        facts(request, newest) ++ growth(completed.map(_.report)) ++ stores(request, row.run.runId, report) ++
          details.fold(Seq.empty[Node])(partitions(request, row.run.runId, _))
    }
  }

  private def facts(request: HttpServletRequest, newest: HistoryRow): Seq[Node] = {
    val report = newest.report
    val address = parent.address(request, CheckpointPage.Name, "key" -> newest.key)
    Cells.facts(
      "Checkpoint" -> Cells.link(address, s"${report.id.getOrElse("-")}, batch ${report.batchId}"),
      "Full size" -> Cells.size(report.stateBytes),
      "Rows" -> Cells.number(report.rows))
  }

  /** Checkpoints as the history has them. The stores of each have a line, if there are several but few. */
  private def growth(reports: Seq[CheckpointReport]): Seq[Node] = {
    def points(of: CheckpointReport => Option[Long]) =
      reports.flatMap(report => of(report).map((report.batchId, _)))
    val names = new StoreNames(reports.last)
    val keys = reports.last.operators.map(operator => (operator.operatorId, operator.store))
    def lines(total: CheckpointReport => Option[Long], of: OperatorReport => Option[Long]) = {
      val all = Svg.Line("all", points(total))
      if (keys.size < 2 || keys.size > MaxLines) Seq(all)
      else all +: keys.map { case (id, store) =>
        Svg.Line(names.store(id, store),
          points(_.operators.find(o => o.operatorId == id && o.store == store).flatMap(of)))
      }
    }
    val of = if (reports.size == 1) "one completed checkpoint" else s"the last ${reports.size} completed checkpoints"
    Cells.heading(s"Growth over $of") ++ <div>{Cells.join(
      Svg.lines("growth-bytes", "Full size", lines(_.stateBytes, _.stateBytes), bytes),
      Svg.lines("growth-rows", "Rows", lines(_.rows, _.rows), _.toString),
      Svg.lines("growth-new", "New size of each checkpoint", lines(_.newBytes, _.newBytes), bytes))
    }</div>
  }

  private def stores(request: HttpServletRequest, runId: String, report: CheckpointReport): Seq[Node] = {
    val subtasks = report.subtasks.groupBy(subtask => (subtask.operatorId, subtask.store))
    val rows = report.operators.map { operator =>
      StoreRow(operator, subtasks.getOrElse((operator.operatorId, operator.store), Nil).sortBy(_.partition))
    }
    val names = new StoreNames(report)
    val column = new Columns[StoreRow]
    val columns = Seq(
      column.sorted("Store", row => Text(names.store(row.operator.operatorId, row.operator.store)),
        row => (row.operator.operatorId, row.operator.store)),
      column.sorted("Partitions", row => Text(row.operator.parallelism.toString), _.operator.parallelism),
      column.sorted("Rows", row => Cells.number(row.operator.rows), _.operator.rows),
      column.sorted("Full size", row => Cells.size(row.operator.stateBytes), _.operator.stateBytes),
      column.sorted("New size", row => Cells.size(row.operator.newBytes), _.operator.newBytes),
      column.sorted("Chain length", row => Cells.number(row.operator.chainLength), _.operator.chainLength),
      column.sorted(s"Rows of a partition $Spread", row => spread(row.rows, _.toString), _.rows.map(_.most)),
      column.sorted("Skew of rows", row => skew(row.rows), row => ratio(row.rows), Some(SkewIs)),
      column.sorted(s"Size of a partition $Spread", row => spread(row.sizes, bytes), _.sizes.map(_.most)),
      column.sorted("Skew of size", row => skew(row.sizes), row => ratio(row.sizes), Some(SkewIs)))
    val path = parent.address(request, Name, "run" -> runId)
    val plots = rows.take(MaxLines).zipWithIndex.flatMap { case (row, index) =>
      val name = names.store(row.operator.operatorId, row.operator.store)
      Svg.columns(s"rows-$index", s"Rows by partition: $name", row.subtasks.map(s => (s.partition, s.rows)),
        _.toString) ++
        Svg.columns(s"bytes-$index", s"Full size by partition: $name",
          row.subtasks.flatMap(s => s.stateBytes.map((s.partition, _))), bytes)
    }
    Cells.heading("Stores") ++ StatusTable.render(request, "stores", path, rows, columns, "Full size") ++
      <div>{plots}</div>
  }

  private def partitions(request: HttpServletRequest, runId: String, report: CheckpointReport): Seq[Node] = {
    val names = new StoreNames(report)
    val total = report.stateBytes.getOrElse(0L).max(1L)
    val column = new Columns[SubtaskReport]
    val columns = Seq(
      column.sorted("Store", subtask => Text(names.store(subtask.operatorId, subtask.store)),
        (subtask: SubtaskReport) => (subtask.operatorId, subtask.store)),
      column.sorted("Partition", subtask => Text(subtask.partition.toString), _.partition),
      column.sorted("Rows", subtask => Text(subtask.rows.toString), _.rows),
      column.sorted("Full size", subtask => Cells.size(subtask.stateBytes), _.stateBytes),
      column.sorted("Share of all", subtask => Text(subtask.stateBytes.fold("-")(size => percent(size, total))),
        _.stateBytes),
      column.sorted("New size", subtask => Cells.size(Some(subtask.newBytes)), _.newBytes),
      column.sorted("Chain length", subtask => Cells.number(subtask.chainLength), _.chainLength))
    val subtasks = report.subtasks
    val acks = report.acks.getOrElse(0L)
    val title =
      if (acks > subtasks.size) s"Partitions (last ${subtasks.size} of $acks to acknowledge)"
      else s"Partitions ($acks)"
    val path = parent.address(request, Name, "run" -> runId)
    Cells.heading(title) ++ StatusTable.render(request, "partitions", path, subtasks, columns, "Full size")
  }

  private def spread(values: Option[Distribution], show: Long => String): Seq[Node] =
    Text(values.fold("-")(all => s"${show(all.least)} / ${show(all.median)} / ${show(all.most)}"))

  private def skew(values: Option[Distribution]): Seq[Node] = Text(values.fold("-")(all => decimal(all.skew)))

  private def ratio(values: Option[Distribution]): Long = values.fold(-1L)(all => (all.skew * 1000).round)
}

private[ui] object StatePage {
  val Name = "state"

  /** Stores with plots and lines of their own. */
  private val MaxLines = 8

  private val Spread = "(min / median / max)"
  private val SkewIs = "Largest partition as a multiple of the mean one"
  private val bytes = (value: Long) => Utils.bytesToString(value)

  private def decimal(value: Double): String = String.format(java.util.Locale.ROOT, "%.2f", Double.box(value))
  private def percent(part: Long, of: Long): String = decimal(100.0 * part / of) + " %"

  /** A store with its subtasks in order of partitions, as far as the report has them. */
  private final case class StoreRow(operator: OperatorReport, subtasks: Seq[SubtaskReport]) {
    val rows: Option[Distribution] = Distribution.of(subtasks.map(_.rows))
    val sizes: Option[Distribution] = Distribution.of(subtasks.flatMap(_.stateBytes))
  }
}
