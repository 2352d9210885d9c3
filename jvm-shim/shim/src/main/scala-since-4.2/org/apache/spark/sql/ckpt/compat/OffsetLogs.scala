// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.execution.streaming.checkpointing.{OffsetMap, OffsetSeqBase}

/** Entries of Spark's offset log. */
private[ckpt] object OffsetLogs {

  /** Sources by name or number, with their offsets as JSON. */
  def sources(entry: OffsetSeqBase): Seq[(String, Option[String])] = entry match {
    case named: OffsetMap =>
      named.offsetsMap.toSeq.sortBy(_._1).map { case (name, offset) => (name, offset.map(_.json())) }
    case numbered => numbered.offsets.zipWithIndex.map { case (offset, i) => (i.toString, offset.map(_.json())) }
  }

  type Entry = OffsetSeqBase
}
