// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.locate

import org.apache.spark.sql.ckpt.protocol.{Blocks, LocatedFile, PartitionFilter, SegmentRef}

/**
 * What a handle in a `_metadata` knows of a segment: its blocks, but not its versions.
 *
 * @param file None if the blocks have the bytes
 */
private[ckpt] final case class SegmentHandle(file: Option[LocatedFile], blocks: Blocks) {

  /** The segment, whose size is unknown. */
  def segment(firstVersion: Long, version: Long, filters: Seq[PartitionFilter]): SegmentRef =
    SegmentRef(firstVersion, version, blocks, size = 0, file.map(_.name), file.fold(0L)(_.bytes), filters)
}
