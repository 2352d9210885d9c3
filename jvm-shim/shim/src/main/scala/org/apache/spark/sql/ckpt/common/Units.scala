// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.common

import java.math.BigDecimal
import java.util.Locale

/**
 * Durations, sizes and shares as text. `spark_ckpt/config/units.py` defines the grammar; both sides test the same
 * examples.
 */
private[ckpt] object Units {
  private val DurationText = raw"(?i)([0-9]{1,18}(?:\.[0-9]{1,18})?)(ms|s|m|min|h|d)?".r
  private val SizeText = "(?i)([0-9]{1,18})(b|[kmg](?:i?b)?)?".r

  private val ShareText = "([0-9]{1,18})%".r

  private val Milliseconds =
    Map("ms" -> 1L, "s" -> 1000L, "m" -> 60000L, "min" -> 60000L, "h" -> 3600000L, "d" -> 86400000L)
  private val Shifts = Map('b' -> 0, 'k' -> 10, 'm' -> 20, 'g' -> 30)

  /** A duration in milliseconds, or None if the text is not one. Without a unit it is in seconds. */
  def milliseconds(text: String): Option[BigInt] = text.strip() match {
    case DurationText(number, unit) =>
      val factor = Milliseconds(Option(unit).fold("s")(_.toLowerCase(Locale.ROOT)))
      Some(BigInt(new BigDecimal(number).multiply(BigDecimal.valueOf(factor)).toBigInteger))
    case _ => None
  }

  /** A number of bytes, or None if the text is not one. */
  def bytes(text: String): Option[BigInt] = text.strip() match {
    case SizeText(number, unit) => Some(BigInt(number) << Shifts(Option(unit).fold('b')(_.charAt(0).toLower)))
    case _ => None
  }

  /** A share in percent, or None if the text is not one. */
  def percent(text: String): Option[BigInt] = text.strip() match {
    case ShareText(number) => Some(BigInt(number))
    case _ => None
  }
}
