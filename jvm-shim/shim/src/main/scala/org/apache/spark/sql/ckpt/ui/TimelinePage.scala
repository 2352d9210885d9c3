// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

import scala.xml.Node

import jakarta.servlet.http.HttpServletRequest

import org.apache.spark.ui.UIUtils

/** Where the time of checkpoints went: a bar for each, and a strip for each subtask of one of them. */
private[ui] final class TimelinePage(parent: CheckpointTab)
    extends RunPage(parent, TimelinePage.Name, "Timeline of checkpoints") {
  import TimelinePage._

  override protected def about(request: HttpServletRequest, row: RunRow): Seq[Node] = {
    val rows = parent.status.checkpoints(row.run.runId).map(HistoryRow.of).reverse
    if (rows.isEmpty) Cells.nothing("No checkpoint has been triggered yet.")
    else checkpoints(request, row.run.runId, rows) ++ subtasks(request, rows)
  }

  private def checkpoints(request: HttpServletRequest, runId: String, rows: Seq[HistoryRow]): Seq[Node] = {
    val ended = rows.filter(_.report.isCompleted).flatMap(_.report.durationMs)
    val all = Distribution.of(ended)
    val bars = rows.map { row =>
      val report = row.report
      val name = report.id.fold(s"batch ${report.batchId}")(id => s"$id, batch ${report.batchId}")
      val link = parent.address(request, Name, "run" -> runId, "key" -> row.key) + "#subtasks"
      val mark =
        if (report.isFailed) "aborted"
        else if (report.isInProgress) s"in progress, ${acks(report)}"
        else if (report.durationMs.exists(duration => all.exists(_.straggles(duration)))) "straggler"
        else ""
      val phases = Phases.of(report)
      Svg.Bar(name, link, s"$name: ${HistoryRow.label(report)}, ${phases.text}", phases.parts, mark)
    }
    Cells.heading("Checkpoints") ++
      Svg.legend("Processing" -> Svg.Grey, "Acknowledging" -> Svg.Blue, "Completing" -> Svg.Green,
        "Aborted" -> Svg.Red) ++
      Svg.bars("checkpoints-timeline", "Phases since the trigger, newest checkpoint first", bars)
  }

  private def subtasks(request: HttpServletRequest, rows: Seq[HistoryRow]): Seq[Node] = {
    val wanted = Option(request.getParameter("key"))
    val row = wanted.flatMap(key => rows.find(_.key == key)).orElse(
      if (wanted.isEmpty) rows.find(row => parent.status.details(row.key).isDefined) else None)
    val found = for (row <- row; details <- parent.status.details(row.key))
      yield (row, CheckpointReport.of(details.report))
    <div id="subtasks">{found match {
      case None if wanted.isEmpty => Nil
      case None => Cells.nothing("Subtasks follow at the end of a checkpoint, and are kept of the newest ones only.")
      case Some((row, report)) => strips(request, row, report)
    }}</div>
  }

  private def strips(request: HttpServletRequest, row: HistoryRow, report: CheckpointReport): Seq[Node] = {
    val names = new StoreNames(report)
    val subtasks = report.subtasks.sortBy(subtask => (subtask.operatorId, subtask.store, subtask.partition))
    val all = Distribution.of(subtasks.map(_.acknowledgedMs))
    val acknowledged = subtasks.map { subtask =>
      val mark = if (all.exists(_.straggles(subtask.acknowledgedMs))) "straggler" else ""
      val snapshot = subtask.startDelayMs + subtask.snapshotUs / 1000.0
      val write = snapshot + subtask.writeUs / 1000.0
      val acknowledge = write + subtask.acknowledgeUs.getOrElse(0L) / 1000.0
      val parts = Seq(Svg.Part(0, subtask.startDelayMs.toDouble, Svg.Grey),
        Svg.Part(subtask.startDelayMs.toDouble, snapshot, Svg.Orange), Svg.Part(snapshot, write, Svg.Blue),
        Svg.Part(write, acknowledge, Svg.Green))
      val name = names.subtask(subtask.operatorId, subtask.store, subtask.partition)
      val detail = s"$name: start delay ${UIUtils.formatDuration(subtask.startDelayMs)}" +
        subtask.restoreUs.fold("")(time => s" with restore ${Cells.micros(time)}") +
        s", snapshot ${Cells.micros(subtask.snapshotUs)}, write ${Cells.micros(subtask.writeUs)}, acknowledged after " +
        UIUtils.formatDuration(subtask.acknowledgedMs) +
        subtask.acknowledgeUs.fold("")(time => s", acknowledge ${Cells.micros(time)}") +
        (if (mark.isEmpty) "" else s", $mark")
      (subtask.operatorId, subtask.store, subtask.partition) -> Svg.Bar(name, "", detail, parts, mark)
    }
    val listed = acknowledged.map(_._1).toSet
    val missing = if (report.isFailed) unacknowledged(report, names, listed) else Nil
    val bars = (acknowledged ++ missing).sortBy(_._1).map(_._2)
    val stragglers = bars.count(_.mark.nonEmpty)
    val name = report.id.fold(s"batch ${report.batchId}")(id => s"checkpoint $id, batch ${report.batchId}")
    val title = s"${bars.size} subtasks of $name, ${if (stragglers == 1) "1 straggler" else s"$stragglers stragglers"}"
    Cells.heading("Subtasks") ++
      <p>{Cells.link(parent.address(request, CheckpointPage.Name, "key" -> row.key), s"Details of $name")}</p> ++
      Svg.legend("Start delay" -> Svg.Grey, "Snapshot" -> Svg.Orange, "Write" -> Svg.Blue,
        "Acknowledge" -> Svg.Green, "Not acknowledged" -> Svg.Red) ++
      Svg.bars("subtasks-timeline", title, bars)
  }

  /** Subtasks that the abort found without an acknowledgement. Unknown if the report leaves acknowledged ones out. */
  private def unacknowledged(report: CheckpointReport, names: StoreNames, listed: Set[(Long, String, Long)]) =
    if (report.acks.exists(_ > listed.size)) Nil
    else {
      for {
        operator <- report.operators
        partition <- 0L until operator.parallelism.min(MaxStrips)
        if !listed.contains((operator.operatorId, operator.store, partition))
      } yield {
        val name = names.subtask(operator.operatorId, operator.store, partition)
        val until = report.durationMs.getOrElse(0L).toDouble
        (operator.operatorId, operator.store, partition) ->
          Svg.Bar(name, "", s"$name: not acknowledged", Seq(Svg.Part(0, until, Svg.Red)), "aborted")
      }
    }

  private def acks(report: CheckpointReport): String =
    s"${report.acks.getOrElse(0L)}/${report.expected.getOrElse(0L)} acknowledged"
}

private[ui] object TimelinePage {
  val Name = "timeline"

  private val MaxStrips = 1000L

  /**
   * Phases of a checkpoint in milliseconds since the trigger.
   *
   * @param snapshot start of the first snapshot: until then the batch was processed
   * @param lastAck  last acknowledgement, or the abort
   * @param end      when it was durable
   */
  private final case class Phases(snapshot: Long, lastAck: Long, end: Long, failed: Boolean) {
    def parts: Seq[Svg.Part] = Seq(
      Svg.Part(0, snapshot.toDouble, Svg.Grey),
      Svg.Part(snapshot.toDouble, lastAck.toDouble, if (failed) Svg.Red else Svg.Blue),
      Svg.Part(lastAck.toDouble, end.toDouble, Svg.Green))

    def text: String = s"first snapshot after ${UIUtils.formatDuration(snapshot)}, " +
      s"${if (failed) "aborted" else "acknowledged"} after ${UIUtils.formatDuration(lastAck)}" +
      (if (failed) "" else s", durable after ${UIUtils.formatDuration(end)}")
  }

  private object Phases {
    def of(report: CheckpointReport): Phases = {
      val lastAck = report.acknowledgedMs.getOrElse(0L)
      val snapshot = report.operators.flatMap(_.spread("start_delay_ms")).map(_.head).minOption
      Phases(snapshot.getOrElse(lastAck).min(lastAck), lastAck, report.durationMs.getOrElse(lastAck), report.isFailed)
    }
  }
}

/** Names of stores and subtasks, as short as the operators of a checkpoint permit. */
private[ui] final class StoreNames(report: CheckpointReport) {
  private val names = report.operators.map(operator => operator.operatorId -> operator.name).toMap
  private val isSingle = report.operators.size == 1

  def store(operatorId: Long, store: String): String = {
    val name = s"$operatorId ${names.getOrElse(operatorId, "")}".trim
    if (store == "default") name else s"$name, $store"
  }

  def subtask(operatorId: Long, store: String, partition: Long): String =
    if (isSingle) s"partition $partition" else s"$operatorId $store, $partition"
}
