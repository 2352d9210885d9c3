// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.logs

/** A log of a run that another run may have taken over. */
private[ckpt] trait FencedLog {

  /** The log epoch at the start of the run whose log this is, if its logs are fenced. */
  def logEpoch: Option[Long]
}
