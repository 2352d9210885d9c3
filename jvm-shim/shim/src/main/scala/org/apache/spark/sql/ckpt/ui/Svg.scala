// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

import java.util.Locale

import scala.xml.Node

import org.apache.spark.ui.UIUtils

/** Plots as SVG inside the page. Text has the colour of the page, so it fits a dark one too. */
private[ui] object Svg {

  /** A line of a plot: its name, and its values by the number of the checkpoint. */
  final case class Line(name: String, points: Seq[(Long, Long)])

  /** A part of a bar, from and to the same unit as those of all other bars. */
  final case class Part(from: Double, to: Double, colour: String)

  /**
   * A horizontal bar.
   *
   * @param label  before it
   * @param link   target of the label, empty without one
   * @param detail text that a pointer over the bar shows
   * @param mark   text behind it, empty without one
   */
  final case class Bar(label: String, link: String, detail: String, parts: Seq[Part], mark: String)

  val Blue = "#1f77b4"
  val Orange = "#ff7f0e"
  val Green = "#2ca02c"
  val Grey = "#b0b7bf"
  val Red = "#d62728"
  private val Palette = Seq(Blue, Orange, Green, "#9467bd", "#8c564b", "#e377c2", "#17becf", "#bcbd22", "#7f7f7f")

  private val Width = 520
  private val Height = 190
  private val Left = 84
  private val Right = 10
  private val Top = 12
  private val Bottom = 26
  private val LabelWidth = 130
  private val BarsWidth = 1100
  private val BarsRight = 190

  /** Names of colours. */
  def legend(names: (String, String)*): Seq[Node] =
    <p class="ckpt-legend">{names.map { case (name, colour) =>
      <span style="margin-right: 1.2em; white-space: nowrap;"><span style={
        s"display: inline-block; width: 0.8em; height: 0.8em; margin-right: 0.3em; background: $colour;"
      }></span>{name}</span>
    }}</p>

  /** Lines over checkpoints; from 0 on, so that growth is not exaggerated. */
  def lines(id: String, title: String, lines: Seq[Line], show: Long => String): Seq[Node] = {
    val points = lines.flatMap(_.points)
    if (points.isEmpty) Nil
    else {
      val (first, last) = (points.map(_._1).min, points.map(_._1).max)
      val most = points.map(_._2).max.max(1)
      def x(number: Long): Double =
        Left + (if (last == first) 0.5 else (number - first).toDouble / (last - first)) * (Width - Left - Right)
      def y(value: Long): Double = Height - Bottom - value.toDouble / most * (Height - Top - Bottom)
      val drawn = lines.zipWithIndex.map { case (line, index) =>
        val path = line.points.map { case (number, value) => s"${at(x(number))},${at(y(value))}" }.mkString(" ")
        val dots = line.points.map { case (number, value) =>
          <circle cx={at(x(number))} cy={at(y(value))} r="2.5" fill={colour(index)}><title>{
            s"${line.name}, batch $number: ${show(value)}"
          }</title></circle>
        }
        <g><polyline points={path} fill="none" stroke={colour(index)} stroke-width="1.5"/>{dots}</g>
      }
      val body = grid(most, show, y) ++ drawn ++
        label(Left, Height - 8, "start", s"batch $first") ++ label(Width - Right, Height - 8, "end", s"batch $last")
      val names = lines.map(_.name).zipWithIndex.map { case (name, index) => (name, colour(index)) }
      framed(id, title, Width, Height, body, if (names.size > 1) legend(names: _*) else Nil)
    }
  }

  /** A column per partition, with a line at the mean. */
  def columns(id: String, title: String, values: Seq[(Long, Long)], show: Long => String): Seq[Node] =
    Distribution.of(values.map(_._2)).fold(Seq.empty[Node]) { spread =>
      val most = spread.most.max(1)
      val step = (Width - Left - Right).toDouble / values.size
      def y(value: Long): Double = Height - Bottom - value.toDouble / most * (Height - Top - Bottom)
      val drawn = values.zipWithIndex.map { case ((partition, value), index) =>
        <rect x={at(Left + index * step)} y={at(y(value))} width={at((step * 0.85).max(0.4))}
          height={at(Height - Bottom - y(value))} fill={Blue}><title>{
          s"partition $partition: ${show(value)}"
        }</title></rect>
      }
      val mean = y(spread.mean.round)
      val line = <line x1={at(Left)} x2={at(Width - Right)} y1={at(mean)} y2={at(mean)} stroke={Red}
        stroke-dasharray="4 3"><title>{s"mean: ${show(spread.mean.round)}"}</title></line>
      val body = grid(most, show, y) ++ drawn ++ line ++
        label(Left, Height - 8, "start", s"partition ${values.head._1}") ++
        label(Width - Right, Height - 8, "end", s"partition ${values.last._1}")
      framed(id, title, Width, Height, body)
    }

  /** Horizontal bars with a common axis of milliseconds, one below the other. */
  def bars(id: String, title: String, bars: Seq[Bar]): Seq[Node] = {
    val most = bars.flatMap(_.parts.map(_.to)).maxOption.getOrElse(0.0).max(1.0)
    val step = if (bars.size > 100) 9 else 16
    val height = Top + 14 + bars.size * step + 4
    def x(value: Double): Double = LabelWidth + value / most * (BarsWidth - LabelWidth - BarsRight)
    val axis = Seq(0.0, 0.25, 0.5, 0.75, 1.0).flatMap { share =>
      label(x(most * share), Top, "middle", time(most * share, most)) ++
        <line x1={at(x(most * share))} x2={at(x(most * share))} y1={at(Top + 6)} y2={at(height)}
          stroke="currentColor" stroke-opacity="0.15"/>
    }
    val size = if (step < 10) "8" else "11"
    val drawn = bars.zipWithIndex.map { case (bar, index) =>
      val y = Top + 14 + index * step
      val name = <text x={at(LabelWidth - 6)} y={at(y + step * 0.7)} text-anchor="end" font-size={size}
        fill="currentColor">{bar.label}</text>
      val parts = bar.parts.filter(part => part.to > part.from).map { part =>
        <rect x={at(x(part.from))} y={at(y + 1)} width={at((x(part.to) - x(part.from)).max(0.5))}
          height={at(step - 2)} fill={part.colour}/>
      }
      val end = bar.parts.map(_.to).maxOption.getOrElse(0.0)
      val mark = if (bar.mark.isEmpty) Nil else {
        <text x={at(x(end) + 5)} y={at(y + step * 0.7)} font-size={size} fill={Red} class="ckpt-mark">{bar.mark}</text>
      }
      <g class="ckpt-bar"><title>{bar.detail}</title>{
        if (bar.link.isEmpty) name else <a href={bar.link}>{name}</a>
      }{parts}{mark}</g>
    }
    framed(id, title, BarsWidth, height, axis ++ drawn)
  }

  private def grid(most: Long, show: Long => String, y: Long => Double): Seq[Node] =
    Seq(0L, most / 2, most).distinct.flatMap { value =>
      <line x1={at(Left)} x2={at(Width - Right)} y1={at(y(value))} y2={at(y(value))} stroke="currentColor"
        stroke-opacity="0.2"/> ++ label(Left - 6, y(value) + 4, "end", show(value))
    }

  private def label(x: Double, y: Double, anchor: String, text: String): Seq[Node] =
    <text x={at(x)} y={at(y)} text-anchor={anchor} font-size="11" fill="currentColor">{text}</text>

  /** A time on an axis: more digits than Spark's durations have, since neighbouring ones must differ. */
  private def time(millis: Double, most: Double): String =
    if (most < 10) String.format(Locale.ROOT, "%.1f ms", Double.box(millis))
    else if (most < 1000) s"${millis.round} ms"
    else if (most < 100000) String.format(Locale.ROOT, "%.1f s", Double.box(millis / 1000))
    else UIUtils.formatDuration(millis.round)

  private def framed(
      id: String,
      title: String,
      width: Int,
      height: Int,
      body: Seq[Node],
      below: Seq[Node] = Nil): Seq[Node] =
    <figure id={id} style="display: inline-block; margin: 0 1.5em 1em 0; vertical-align: top; max-width: 100%;">
      <figcaption><strong>{title}</strong></figcaption>
      <svg role="img" aria-label={title} viewBox={s"0 0 $width $height"} width={width.toString}
        height={height.toString} style="max-width: 100%;">{body}</svg>
      {below}
    </figure>

  private def colour(index: Int): String = Palette(index % Palette.size)

  private def at(value: Double): String = String.format(Locale.ROOT, "%.1f", Double.box(value))
}
