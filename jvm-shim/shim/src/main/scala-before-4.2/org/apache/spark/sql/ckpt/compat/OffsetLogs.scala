// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeq

/** Entries of Spark's offset log. */
private[ckpt] object OffsetLogs {

  /** Sources by number, with their offsets as JSON. */
  def sources(entry: OffsetSeq): Seq[(String, Option[String])] =
    entry.offsets.zipWithIndex.map { case (offset, i) => (i.toString, offset.map(_.json())) }

  type Entry = OffsetSeq
}
