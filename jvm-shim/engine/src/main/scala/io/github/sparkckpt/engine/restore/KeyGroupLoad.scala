// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.restore

import io.github.sparkckpt.engine.segment.{RestoreFilter, SegmentReader, SegmentSink, StateSegment}
import io.github.sparkckpt.engine.table.StateTable

/** What a [[KeyGroupLoad]] is about to load. */
private[engine] trait KeyGroupPhases {

  /** Changes of a key group by deltas, oldest first. */
  def beginKeyGroup(keyGroup: Int): Unit

  /** Rows of the key group in bases. */
  def beginBases(): Unit

  /** Nothing more of this key group. */
  def endKeyGroup(): Unit
}

/**
 * Loads into one table.
 *
 * @param checkOpen throws once the load is no longer needed
 */
private[engine] final class LoadPhases(table: StateTable, val checkOpen: () => Unit) extends KeyGroupPhases {
  override def beginKeyGroup(keyGroup: Int): Unit = {
    checkOpen()
    table.load.beginKeyGroup(keyGroup)
  }

  override def beginBases(): Unit = table.load.beginBases()

  override def endKeyGroup(): Unit = table.load.endKeyGroup()
}

/**
 * Loads segments one key group at a time: first its blocks in deltas, oldest first, then those in bases. What deltas
 * have changed is thus looked up in the processor's cache. Deltas that follow whole bases would look for each of their
 * keys anywhere in the state: a few hundred nanoseconds each, or a read of the local disk.
 *
 * For single values only: a list in a base is the start of what deltas append.
 *
 * @param segments bases first, then deltas, oldest first, with the key groups of their blocks
 * @param sink     receiver of the rows
 * @param filter   key groups that a block may have
 * @param newest   highest version that a block may have
 */
private[engine] final class KeyGroupLoad(
    segments: IndexedSeq[StateSegment], sink: SegmentSink, filter: RestoreFilter, newest: Long) {
  import KeyGroupLoad._

  private var keyGroup = 0
  private val isExpected: RestoreFilter = (group: Int) => group == keyGroup && filter.acceptsKeyGroup(group)
  private val window = math.max(MinWindow, math.min(MaxWindow, AllWindows / math.max(1, segments.size)))
  private val readers = new Array[SegmentReader](segments.size)

  /**
   * Loads all blocks.
   *
   * @throws StateStreamDamagedException if the contents were changed after they were written
   */
  def load(phases: KeyGroupPhases): Unit = {
    val blocks = ordered()
    var i = 0
    while (i < blocks.length) {
      keyGroup = keyGroupOf(blocks(i))
      val first = i
      while (i < blocks.length && keyGroupOf(blocks(i)) == keyGroup) i += 1
      phases.beginKeyGroup(keyGroup)
      loadBlocks(blocks, first, i, ofBases = false)
      phases.beginBases()
      loadBlocks(blocks, first, i, ofBases = true)
      phases.endKeyGroup()
    }
  }

  private def loadBlocks(blocks: Array[Long], first: Int, until: Int, ofBases: Boolean): Unit = {
    var i = first
    while (i < until) {
      val segment = segmentOf(blocks(i))
      if (segments(segment).isBase == ofBases) readerOf(segment).loadBlock(indexOf(blocks(i)), newest)
      i += 1
    }
  }

  private def readerOf(segment: Int): SegmentReader = {
    if (readers(segment) == null) {
      readers(segment) = new SegmentReader(sink, isExpected, window)
      readers(segment).start(segments(segment))
    }
    readers(segment)
  }

  /** All blocks: key group, segment and index, in this order. */
  private def ordered(): Array[Long] = {
    val blocks = new Array[Long](segments.map(_.offsets.length).sum)
    var n = 0
    for (s <- segments.indices; i <- segments(s).offsets.indices) {
      blocks(n) = (segments(s).keyGroups(i).toLong << KeyGroupAt) | (s.toLong << SegmentAt) | i
      n += 1
    }
    java.util.Arrays.sort(blocks)
    blocks
  }
}

private[engine] object KeyGroupLoad {
  private final val SegmentAt = 32
  private final val KeyGroupAt = 48

  /** Bytes per read, of one segment and of all. */
  private final val MinWindow = 1 << 16
  private final val MaxWindow = 1 << 20
  private final val AllWindows = 1 << 23

  private def keyGroupOf(block: Long): Int = (block >>> KeyGroupAt).toInt

  private def segmentOf(block: Long): Int = ((block >>> SegmentAt) & 0xFFFF).toInt

  private def indexOf(block: Long): Int = block.toInt

  /** True if there is something to gain: rows of several segments, whose key groups are known. */
  def isUseful(segments: Seq[StateSegment]): Boolean =
    segments.sizeIs > 1 && segments.sizeIs <= 0xFFFF && segments.exists(!_.isBase) &&
      segments.forall(segment => segment.offsets.length == segment.keyGroups.length)
}
