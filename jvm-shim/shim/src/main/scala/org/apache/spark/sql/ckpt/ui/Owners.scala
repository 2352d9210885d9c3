// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

import scala.xml.{Node, Text}

/** Owners of a location as text. */
private[ui] object Owners {
  def text(claim: Claim): Seq[Node] = Cells.join(
    Text(s"generation ${claim.generation.getOrElse("-")}: "),
    Text(s"process ${claim.pid.getOrElse("-")} on ${claim.host}, since "),
    Cells.time(claim.claimedMs))

  /** The owner, and the newest of those before it. */
  def all(start: StartReport): Seq[Node] = {
    val last = start.fenced.lastOption.map(claim => <div>It has fenced {text(claim)}</div>)
    Cells.join(text(start.claim), last.toSeq)
  }

  /** What the driver had to do about its side process. */
  def coordinator(hung: Long): String = hung match {
    case 0 => "has not been found hanging"
    case 1 => "killed and replaced once, because it gave no sign of life"
    case _ => s"killed and replaced $hung times, because it gave no sign of life"
  }

  /** Earlier owners, newest first: none of them can complete a checkpoint any more. */
  def fenced(claims: Seq[Claim]): Seq[Node] =
    if (claims.isEmpty) Cells.text("")
    else claims.reverse.flatMap(claim => <div>{text(claim)}, run {claim.runId}</div>)
}
