// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.compaction

import java.io.{Closeable, File, OutputStream}
import java.util.Arrays

import scala.collection.mutable

import io.github.sparkckpt.engine.bytes.{Bytes, ListCursor}
import io.github.sparkckpt.engine.segment.{BlockBuilder, BlockCodec, SegmentFormat, SegmentInfo, StateTooLargeException}
import io.github.sparkckpt.engine.segment.SegmentConstants.{CompressedFlag, OrderedFlag}

import org.apache.spark.unsafe.Platform

/**
 * Writer of a base segment from rows in any order of key groups, in bounded memory: an external sort by key group.
 *
 * Rows collect in a buffer. A full buffer is sorted and goes to a local file. In the end, each block is assembled from
 * its parts in the file and in the buffer. So memory holds the buffer, and the largest block. Not thread-safe.
 *
 * @param maxParallelism number of key groups
 * @param bufferBytes    size of the buffer
 * @param codec          codec of its blocks
 * @param newFile        path of a temporary file that does not exist
 */
final class BaseWriter(
    maxParallelism: Int, bufferBytes: Long, codec: BlockCodec, newFile: () => File)
    extends Closeable {
  private var families = Vector.empty[(String, Boolean)]
  private val buffer = new RowBuffer(maxParallelism)
  private var spill: SpillFile = _
  private val spilled = Array.fill(maxParallelism)(mutable.ArrayBuffer.empty[RowPart])
  private val list = new PendingList

  private val block = new BlockBuilder(codec)

  /** Bytes of the arrays that hold rows until the next spill. */
  private[engine] def heldBytes: Long = buffer.size

  /** Bytes of memory, estimated while rows are added and written. From any thread. */
  private[engine] def memoryBytes: Long = {
    val file = spill
    heldBytes + list.memoryBytes + block.memoryBytes + (if (file == null) 0L else file.memoryBytes)
  }

  /** Starts a column family; the rows that follow are its rows. */
  def startFamily(name: String, multiValue: Boolean): Unit = {
    endList()
    families :+= name -> multiValue
  }

  /** Adds the value of a key. In a family of lists, the rows of a key come one after another, in the list's order. */
  def add(
      keyGroup: Int,
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      valueBase: AnyRef,
      valueOffset: Long,
      valueLength: Int): Unit =
    if (families.last._2) {
      if (!list.isOf(keyBase, keyOffset, keyLength)) {
        endList()
        list.start(keyGroup, keyBase, keyOffset, keyLength)
      }
      list.append(valueBase, valueOffset, valueLength)
    } else {
      addEntry(keyGroup, keyBase, keyOffset, keyLength, valueBase, valueOffset, valueLength)
    }

  /** Adds a key with its value, or with all of its list, of any other family or key than rows of [[add]]. */
  private[engine] def addEntry(
      keyGroup: Int,
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      valueBase: AnyRef,
      valueOffset: Long,
      valueLength: Int): Unit = {
    if (!buffer.isEmpty && buffer.size + keyLength + valueLength > bufferBytes) spillBuffer()
    buffer.add(families.size - 1, keyGroup, keyBase, keyOffset, keyLength, valueBase, valueOffset, valueLength)
  }

  private def endList(): Unit = if (list.isPending) {
    val start = Platform.BYTE_ARRAY_OFFSET.toLong
    val value = list.end()
    addEntry(list.keyGroup, list.key, start, list.key.length, value, start, list.length)
  }

  private def spillBuffer(): Unit = {
    if (spill == null) spill = new SpillFile(newFile())
    buffer.parts.foreach(part => spilled(part.keyGroup) += spill.add(part))
    buffer.clear()
  }

  /**
   * Writes the segment, block by block. The stream is not closed. No row can be added afterwards.
   *
   * @param version version of the state
   * @throws StateTooLargeException if one key group has more than 1 GiB
   */
  def write(version: Long, out: OutputStream): SegmentInfo = {
    endList()
    val parts = spilled
    buffer.parts.foreach(part => parts(part.keyGroup) += part)
    val groups = parts.indices.filter(parts(_).nonEmpty).toArray
    val offsets = new Array[Long](groups.length)
    var written = 0L
    var entries = 0L
    groups.indices.foreach { i =>
      val group = groups(i)
      block.start()
      // Families came one after another, so the parts of one are neighbours.
      var rest = parts(group).toSeq
      while (rest.nonEmpty) {
        val (section, others) = rest.span(_.family == rest.head.family)
        entries += writeSection(block, group, section)
        rest = others
      }
      parts(group).clear()
      offsets(i) = written
      written += block.writeTo(out, group, isBase = true, version)
    }
    val isOrdered = block.unorderedSections == 0 && !families.exists(_._2)
    SegmentInfo(groups, offsets, entries, written,
      SegmentInfo.flags(CompressedFlag -> (block.compressedBlocks > 0), OrderedFlag -> isOrdered))
  }

  private def writeSection(block: BlockBuilder, group: Int, parts: Seq[RowPart]): Int = {
    val (name, multiValue) = families(parts.head.family)
    val n = parts.foldLeft(0)((sum, part) => Math.addExact(sum, part.summary.rows))
    val keyBytes = parts.map(_.summary.keyBytes).sum
    val valueBytes = parts.map(_.summary.valueBytes).sum
    val keyLength = same(parts.map(_.summary.keyLength))
    val valueLength = same(parts.map(_.summary.valueLength))
    // Entries of the empty key get a length each: a reader trusts no number of entries that takes no bytes.
    val sameKeys = keyLength > 0 || (keyLength == 0 && n == 1)
    val sameValues = valueLength >= 0
    block.startSection(
      name, if (multiValue) SegmentFormat.Lists else 0, group, n, sameKeys, sameValues, keyBytes + valueBytes)
    def place(part: RowPart)(copy: (Array[Byte], Int) => Unit): Unit = {
      copy(block.bytes, block.position)
      block.position += 4 * part.summary.rows
    }
    if (sameKeys) block.putInt(keyLength) else parts.foreach(part => place(part)(part.copyKeyLengths))
    if (sameValues) block.putInt(valueLength) else parts.foreach(part => place(part)(part.copyValueLengths))
    var keysAt = block.position
    var valuesAt = keysAt + keyBytes.toInt
    parts.foreach { part =>
      part.copyRows(block.bytes, keysAt, valuesAt)
      keysAt += part.summary.keyBytes.toInt
      valuesAt += part.summary.valueBytes.toInt
    }
    block.position = valuesAt
    if (!multiValue) block.orderSection()
    n
  }

  private def same(lengths: Seq[Int]): Int =
    if (lengths.forall(_ == lengths.head)) lengths.head else PartSummary.Various

  override def close(): Unit = if (spill != null) spill.close()
}

/** The list of the current key, as a value of a segment (docs/protocol.md section 2). */
private final class PendingList {
  var keyGroup: Int = 0
  var key: Array[Byte] = _

  /** Bytes of the value. */
  var length: Int = 0

  private var value = new Array[Byte](256)
  private var rows = 0

  /** Bytes of memory. */
  def memoryBytes: Long = value.length

  def isPending: Boolean = key != null && rows > 0

  def isOf(base: AnyRef, offset: Long, keyLength: Int): Boolean = isPending && key.length == keyLength &&
    Bytes.equalWords(key, Platform.BYTE_ARRAY_OFFSET, base, offset, keyLength)

  def start(group: Int, base: AnyRef, offset: Long, keyLength: Int): Unit = {
    keyGroup = group
    key = Bytes.toArray(base, offset, keyLength)
    length = 4
    rows = 0
  }

  def append(base: AnyRef, offset: Long, rowLength: Int): Unit = {
    val size = length + 4L + rowLength
    if (size > SegmentFormat.maxBlockBytes) throw new StateTooLargeException("A list of the state has more than 1 GiB.")
    if (size > value.length) {
      val wanted = math.max(size, value.length * 2L)
      value = Arrays.copyOf(value, math.min(SegmentFormat.maxBlockBytes.toLong, wanted).toInt)
    }
    ListCursor.putInt(value, Platform.BYTE_ARRAY_OFFSET.toLong + length, rowLength)
    Platform.copyMemory(base, offset, value, Platform.BYTE_ARRAY_OFFSET.toLong + length + 4, rowLength)
    length = size.toInt
    rows += 1
  }

  /** The value, in an array that the next list uses again. */
  def end(): Array[Byte] = {
    ListCursor.putInt(value, Platform.BYTE_ARRAY_OFFSET, rows)
    rows = 0
    value
  }
}
