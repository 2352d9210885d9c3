// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.bridge

/** Figures of the side process, read at any time and without waiting. */
private[ckpt] trait SideProcessStatus {

  /** Process id of the running side process, for diagnosis. */
  def pid: Option[Long]

  /** Number of processes started after the first. */
  def restarts: Long

  /** Number of processes that were killed because they gave no sign of life. */
  def hung: Long

  /** Number of requests without an answer. */
  def openRequests: Int
}
