// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

/**
 * Description of a written segment.
 *
 * @param keyGroups key groups with a block, ascending
 * @param offsets start of each block, in bytes from the start of the segment
 * @param entries number of entries, removed keys included
 * @param bytes length of the segment
 * @param flags bits of [[SegmentConstants]], set by writers and used by readers
 */
final case class SegmentInfo(
    keyGroups: Array[Int],
    offsets: Array[Long],
    entries: Long,
    bytes: Long,
    flags: Int = 0)

object SegmentInfo {

  /** The bits that are set, each with a condition. */
  def flags(bits: (Int, Boolean)*): Int = bits.foldLeft(0) { case (set, (bit, isSet)) => if (isSet) set | bit else set }
}

/** A segment in memory. `bytes` holds exactly the segment. */
final case class SegmentBytes(info: SegmentInfo, bytes: Array[Byte])

/**
 * A segment to restore from.
 *
 * @param isBase base or delta
 * @param source source of its bytes
 * @param offsets start of each block to load, ascending, as positions in the source
 * @param keyGroups key group of each block, if the segments may be loaded one key group at a time; else empty
 */
final case class StateSegment(
    isBase: Boolean,
    source: ByteSource,
    offsets: Array[Long],
    rows: RowFilter = RowFilter.All,
    keyGroups: Array[Int] = Array.emptyIntArray)
