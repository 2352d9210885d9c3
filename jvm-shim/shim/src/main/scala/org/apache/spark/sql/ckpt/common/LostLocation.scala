// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.common

/** Ends of a run that no longer owns its location: another driver or a command has taken over. */
private[ckpt] object LostLocation {
  private val Errors =
    """\[(FencedError|SupersededRunError|ClaimDeletedError|OwnershipLostError|LogFencedError|BatchCommittedError)\]""".r

  /** @param exception stack trace of the failure that has ended the run */
  def isCause(exception: String): Boolean = Errors.findFirstIn(exception).isDefined
}
