// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

import scala.xml.{Node, NodeSeq, Text}

import org.apache.spark.ui.UIUtils
import org.apache.spark.util.Utils

/** Figures as text. A figure that is absent is a dash. */
private[ui] object Cells {
  private val Absent = "-"

  def text(value: String): Seq[Node] = Text(if (value.isEmpty) Absent else value)
  def number(value: Option[Long]): Seq[Node] = shown(value)(_.toString)
  def size(value: Option[Long]): Seq[Node] = shown(value)(Utils.bytesToString)
  def time(value: Option[Long]): Seq[Node] = shown(value)(UIUtils.formatDate)
  def duration(value: Option[Long]): Seq[Node] = shown(value)(UIUtils.formatDuration)
  def acknowledged(report: CheckpointReport): Seq[Node] =
    shown(report.acks)(acks => s"$acks/${report.expected.getOrElse(0L)}")

  /** Microseconds as milliseconds: a snapshot often takes less than one. */
  def micros(value: Long): String = s"${BigDecimal(value, 3).bigDecimal.toPlainString} ms"

  def phase(micros: Option[Long]): Seq[Node] = Text(micros.fold(Absent)(Cells.micros))

  /** Minimum, mean and maximum. A line breaks between values only. */
  def spread(values: Option[Seq[Long]], show: Long => String): Seq[Node] = values match {
    case None => Text(Absent)
    case Some(known) =>
      val parts = known.zipWithIndex.map { case (value, index) =>
        <span style="white-space: nowrap;">{if (index == 0) show(value) else s"/ ${show(value)}"}</span>
      }
      NodeSeq.fromSeq(parts.head +: parts.tail.flatMap(part => Seq(Text(" "), part)))
  }

  /** A text of any length that breaks lines. */
  def long(value: String): Seq[Node] =
    if (value.isEmpty) Text(Absent) else <span style="white-space: pre-wrap; overflow-wrap: anywhere;">{value}</span>

  def link(address: String, value: String): Seq[Node] = <a href={address}>{value}</a>

  /** Names and values as Spark's UI lists them above tables. */
  def facts(values: (String, Seq[Node])*): Seq[Node] =
    <ul class="list-unstyled">{values.map { case (name, value) => <li><strong>{name}: </strong>{value}</li> }}</ul>

  def nothing(message: String): Seq[Node] = <div><p>{message}</p></div>

  def heading(value: String): Seq[Node] = <h4>{value}</h4>

  def join(parts: Seq[Node]*): NodeSeq = NodeSeq.fromSeq(parts.flatten)

  private def shown(value: Option[Long])(show: Long => String): Seq[Node] = Text(value.fold(Absent)(show))
}
