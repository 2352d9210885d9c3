/*
 * Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
 * the License. You may obtain a copy of the License at
 *
 *    http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on
 * an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
 * specific language governing permissions and limitations under the License.
 */
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
