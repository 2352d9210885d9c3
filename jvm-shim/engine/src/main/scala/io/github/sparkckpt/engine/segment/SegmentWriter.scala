// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

import java.io.OutputStream
import java.util.Arrays

/**
 * Writes segments (docs/protocol.md section 2), block by block.
 *
 * Entries are brought into the order of key groups by a counting sort over their numbers; keys and values
 * are then copied once, from the pages into the block. Many entries of the same lengths are sorted themselves: see
 * [[UniformRows]]. A writer can be used again, by one thread.
 *
 * @param maxParallelism number of key groups
 * @param codec codec of its blocks
 * @param idsAtOnce entries that are ordered at once: bounds the memory beside the block to 4 bytes times
 *                  this; more entries take several walks over the headers
 * @param minUniform entries from which [[UniformRows]] pay
 */
private[engine] final class SegmentWriter(
    maxParallelism: Int,
    codec: BlockCodec = BlockCodec.Uncompressed,
    idsAtOnce: Int = 1 << 23,
    minUniform: Int = UniformRows.MinEntries) {
  private var block = new BlockBuilder(codec)
  private var sections = new SectionWriter(block)

  private var groups: Array[Int] = _
  private var offsets: Array[Long] = _
  private var blocks = 0
  private var written = 0L
  private var entries = 0L

  // Of the entries that are being brought into the order of key groups.
  private var orderBytes = 0L

  /** Bytes of memory, estimated while a segment is written. From any thread. */
  def memoryBytes: Long = orderBytes + block.memoryBytes + sections.memoryBytes

  /** Gives up the memory that a large segment has left. */
  def trim(): Unit = if (memoryBytes > SegmentWriter.MaxIdle) {
    block = new BlockBuilder(codec)
    sections = new SectionWriter(block)
  }

  /**
   * Writes a segment with the entries of the sources.
   *
   * @param version version of the state; of a delta the one it leads to
   * @throws StateTooLargeException if one key group has more than 1 GiB
   */
  def write(sources: Array[SegmentSource], isBase: Boolean, version: Long, out: OutputStream): SegmentInfo = {
    val counts = new Array[Array[Int]](sources.length)
    var s = 0
    while (s < sources.length) {
      counts(s) = new Array[Int](maxParallelism)
      sources(s).countGroups(counts(s))
      s += 1
    }
    start(counts)
    val (compressed, unordered) = (block.compressedBlocks, block.unorderedSections)
    var first = 0
    while (first < maxParallelism) {
      val until = rangeFrom(first, counts)
      writeRange(sources, counts, first, until, isBase, version, out)
      first = until
    }
    val isOrdered =
      isWhole(isBase, version) && sources.forall(_.hasSingleValues) && block.unorderedSections == unordered
    SegmentInfo(Arrays.copyOf(groups, blocks), Arrays.copyOf(offsets, blocks), entries, written,
      SegmentInfo.flags(SegmentConstants.CompressedFlag -> (block.compressedBlocks > compressed),
        SegmentConstants.OrderedFlag -> isOrdered))
  }

  /** True if the segment has all of the state: a base, or the changes of the first batch. */
  private def isWhole(isBase: Boolean, version: Long): Boolean = isBase || version == 1

  private def start(counts: Array[Array[Int]]): Unit = {
    var used = 0
    var group = 0
    while (group < maxParallelism) {
      if (total(counts, group) > 0) used += 1
      group += 1
    }
    groups = new Array[Int](used)
    offsets = new Array[Long](used)
    blocks = 0
    written = 0
    entries = 0
  }

  private def total(counts: Array[Array[Int]], group: Int): Long = {
    var sum = 0L
    var s = 0
    while (s < counts.length) {
      sum += counts(s)(group)
      s += 1
    }
    sum
  }

  private def rangeFrom(first: Int, counts: Array[Array[Int]]): Int = {
    var until = first + 1
    var sum = total(counts, first)
    while (until < maxParallelism && sum + total(counts, until) <= idsAtOnce) {
      sum += total(counts, until)
      until += 1
    }
    until
  }

  private def writeRange(
      sources: Array[SegmentSource],
      counts: Array[Array[Int]],
      first: Int,
      until: Int,
      isBase: Boolean,
      version: Long,
      out: OutputStream): Unit = {
    val ids = new Array[Array[Int]](sources.length)
    val ends = new Array[Array[Int]](sources.length)
    val uniform = new Array[UniformRows](sources.length)
    var s = 0
    while (s < sources.length) {
      ends(s) = new Array[Int](until)
      var sum = 0
      var group = first
      while (group < until) {
        ends(s)(group) = sum
        sum = Math.addExact(sum, counts(s)(group))
        group += 1
      }
      if (sum >= minUniform) {
        val rows = new UniformRows(counts(s))
        if (sources(s).gather(first, until, rows)) {
          uniform(s) = rows
          orderBytes += rows.memoryBytes
        }
      }
      if (uniform(s) == null) {
        ids(s) = new Array[Int](sum)
        orderBytes += sum * 4L
        if (sum > 0) sources(s).fill(first, until, ends(s), ids(s))
      }
      s += 1
    }
    var group = first
    while (group < until) {
      if (total(counts, group) > 0) {
        block.start()
        s = 0
        while (s < sources.length) {
          val n = counts(s)(group)
          if (n > 0) {
            if (uniform(s) != null) sections.write(sources(s), uniform(s), n, group)
            else sections.write(sources(s), ids(s), ends(s)(group) - n, n, group)
            if (isWhole(isBase, version) && sources(s).hasSingleValues) block.orderSection()
            entries += n
          }
          s += 1
        }
        groups(blocks) = group
        offsets(blocks) = written
        blocks += 1
        written += block.writeTo(out, group, isBase, version)
      }
      group += 1
    }
    orderBytes = 0
  }
}

private[engine] object SegmentWriter {

  /** Most bytes of memory between two segments. */
  final val MaxIdle = 1L << 20
}
