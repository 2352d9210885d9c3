// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

/**
 * Distribution of a figure. A percentile is the smallest value that so many percent of all do not exceed.
 *
 * @param values at least one
 */
private[ui] final class Distribution(values: Seq[Long]) {
  private val sorted = values.sorted.toIndexedSeq

  def count: Int = sorted.size
  def least: Long = sorted.head
  def most: Long = sorted.last
  def mean: Double = sorted.map(_.toDouble).sum / sorted.size
  def median: Long = percentile(50)

  def percentile(percent: Double): Long = sorted((math.ceil(percent / 100 * sorted.size).toInt - 1).max(0))

  /** Largest value as a multiple of the mean: 1 if all are equal, or 0. */
  def skew: Double = if (most == 0) 1 else most / mean

  /** Whether a value is at least the 95th percentile and one and a half times the median. */
  def straggles(value: Long): Boolean = value > 0 && value >= percentile(95) && value >= 1.5 * median
}

private[ui] object Distribution {

  /** None without values. */
  def of(values: Seq[Long]): Option[Distribution] = if (values.isEmpty) None else Some(new Distribution(values))
}
