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
