// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

import io.github.sparkckpt.engine.bytes.ListCursor

import org.apache.spark.unsafe.Platform

/**
 * Places of the entries of a section (docs/protocol.md section 2) in an array, or from the start of an array that has
 * its block.
 *
 * @param rows          number of entries
 * @param sameKeys      true if all keys have one length
 * @param keyLengthsAt  position of the lengths of the keys
 */
private[engine] final class SectionLayout(
    bytes: Array[Byte], val rows: Int, val sameKeys: Boolean, val sameValues: Boolean, val keyLengthsAt: Int) {

  val valueLengthsAt: Int = keyLengthsAt + (if (sameKeys) 4 else 4 * rows)
  val keysAt: Int = valueLengthsAt + (if (sameValues) 4 else 4 * rows)

  /** Bytes of a key. */
  def keyLength(i: Int): Int = length(if (sameKeys) keyLengthsAt else keyLengthsAt + 4 * i)

  /** Bytes of a value. */
  def valueLength(i: Int): Int = length(if (sameValues) valueLengthsAt else valueLengthsAt + 4 * i)

  private def length(at: Int): Int = ListCursor.getInt(bytes, Platform.BYTE_ARRAY_OFFSET.toLong + at)
}
