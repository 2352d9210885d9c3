// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

import java.nio.ByteBuffer

/**
 * What each block says of its segment. Its checksum is not compared: that follows at loading.
 *
 * @param version version of a base, or that a delta leads to
 */
final case class SegmentHeader(isBase: Boolean, version: Long)

object SegmentHeader {

  /** @param offset start of a block */
  def of(source: ByteSource, offset: Long): SegmentHeader = {
    val header = new Array[Byte](SegmentFormat.HeaderBytes)
    source.readFully(offset, header, 0, header.length)
    SegmentHeader(
      header(SegmentConstants.KindAt) == SegmentFormat.KindBase,
      ByteBuffer.wrap(header).getLong(SegmentFormat.StateVersionAt))
  }
}
