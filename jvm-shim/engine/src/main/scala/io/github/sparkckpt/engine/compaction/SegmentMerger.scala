// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.compaction

import java.io.OutputStream

import scala.collection.mutable

import io.github.sparkckpt.engine.segment._

/**
 * A delta to merge.
 *
 * @param keyGroups key groups of its blocks, ascending
 * @param delta     its blocks, in the order of `keyGroups`
 */
final case class MergeInput(keyGroups: Array[Int], delta: StateSegment)

/** Deltas that cannot be merged, although each of them can be loaded. */
final class DeltasNotMergeableException(message: String) extends RuntimeException(message)

/**
 * Merges neighbouring deltas of a chain into one with the same effect (docs/protocol.md section 2): the last write to a
 * key wins, removals stay, and appended rows are joined. It holds one key group of all deltas in memory at a time, and
 * reads ahead in windows.
 *
 * @param codec  codec of the merged delta's blocks
 * @param window bytes per read of one delta
 */
final class SegmentMerger(
    codec: BlockCodec = BlockCodec.Uncompressed, window: Int = SegmentMerger.WindowBytes) {
  private val block = new BlockBuilder(codec)
  private val sections = new SectionWriter(block)
  private val families = mutable.LinkedHashMap.empty[String, MergedFamily]
  private val haveLists = mutable.HashMap.empty[String, Boolean]
  private var group = 0

  /**
   * Writes the merged delta. The stream is not closed.
   *
   * @param inputs  the deltas, oldest first
   * @param version version that the newest leads to
   * @param pass    called before each key group; what it throws stops the merge
   * @throws StateStreamDamagedException if a block was changed after it was written
   * @throws DeltasNotMergeableException if a family has lists in one delta and single values in another: its removed
   *                                     rows must be gone in all key groups before the others come
   * @throws StateTooLargeException      if one key group has more than 1 GiB
   */
  def merge(inputs: Seq[MergeInput], version: Long, out: OutputStream, pass: () => Unit): SegmentInfo = {
    val sink: SegmentSink = (family, lists) => targetOf(family, lists)
    val readers = inputs.map { input =>
      val reader = new SegmentReader(sink, _ == group, window)
      reader.start(input.delta)
      reader
    }
    val next = new Array[Int](inputs.size)
    val groups = mutable.ArrayBuilder.make[Int]
    val offsets = mutable.ArrayBuilder.make[Long]
    val compressed = block.compressedBlocks
    var written = 0L
    var entries = 0L
    for (current <- inputs.flatMap(_.keyGroups).distinct.sorted) {
      pass()
      group = current
      families.valuesIterator.foreach(_.clear())
      inputs.indices.foreach { i =>
        if (next(i) < inputs(i).keyGroups.length && inputs(i).keyGroups(next(i)) == current) {
          readers(i).loadBlock(next(i), version)
          next(i) += 1
        }
      }
      block.start()
      val merged = families.valuesIterator.map(_.writeTo(sections, current).toLong).sum
      if (merged > 0) {
        groups += current
        offsets += written
        written += block.writeTo(out, current, isBase = false, version)
        entries += merged
      }
    }
    SegmentInfo(groups.result(), offsets.result(), entries, written,
      SegmentInfo.flags(SegmentConstants.CompressedFlag -> (block.compressedBlocks > compressed)))
  }

  /**
   * As [[merge]], in memory; [[StateTooLargeException]] above 1 GiB.
   *
   * @param expected approximate bytes
   */
  def mergeToBytes(
      inputs: Seq[MergeInput], version: Long, expected: Long, pass: () => Unit): SegmentBytes = {
    val buffer = new SegmentBuffer(expected)
    val info = merge(inputs, version, buffer, pass)
    SegmentBytes(info, buffer.toArray)
  }

  private def targetOf(family: String, lists: Boolean): SegmentTarget = {
    if (haveLists.getOrElseUpdate(family, lists) != lists) {
      throw new DeltasNotMergeableException(
        s"The column family '$family' was dropped, and created again with other values: lists instead of single " +
          "ones, or the reverse. Its deltas go into the next base.")
    }
    families.getOrElseUpdate(family, new MergedFamily(family, lists))
  }
}

object SegmentMerger {
  private final val WindowBytes = 1 << 20
}
