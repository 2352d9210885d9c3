// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

import java.io.{ByteArrayOutputStream, DataOutputStream, OutputStream}
import java.util.Arrays
import java.util.zip.CRC32C

import io.github.sparkckpt.engine.bytes.ListCursor

import org.apache.spark.unsafe.Platform

/**
 * One block of a segment under construction (docs/protocol.md section 2). A builder can be used again, by one thread.
 *
 * @param codec codec of bodies that become smaller by it
 */
private[engine] final class BlockBuilder(codec: BlockCodec) {
  import SegmentFormat._

  private val checksum = new CRC32C
  private var order: HashOrder = _
  private var section: SectionLayout = _
  private var unordered = 0L
  private var packed = new Array[Byte](0)
  private var compressed = 0L
  private var sections = 0
  private var ordered = 0

  /** The block so far, until `position`. */
  var bytes = new Array[Byte](4096)
  var position = 0

  /** Bytes of memory, estimated while a block is built. From any thread. */
  def memoryBytes: Long = {
    val sorting = order
    bytes.length.toLong + packed.length + (if (sorting == null) 0L else sorting.memoryBytes)
  }

  def start(): Unit = {
    position = HeaderBytes
    sections = 0
    ordered = 0
  }

  /**
   * Starts a section up to its number of entries, with room for the rest.
   *
   * @param n          number of entries
   * @param sameKeys   true if all keys have one length, which is then given once
   * @param sameValues true if all values have one length
   * @param rowBytes   bytes of all keys and values
   * @throws StateTooLargeException if the block has more than 1 GiB
   */
  def startSection(
      family: String,
      flags: Int,
      group: Int,
      n: Int,
      sameKeys: Boolean,
      sameValues: Boolean,
      rowBytes: Long): Unit = {
    val name = encodedName(family)
    val lengths = (if (sameKeys) 4L else 4L * n) + (if (sameValues) 4L else 4L * n)
    val size = name.length + 5L + lengths + rowBytes
    if (position + size > maxBlockBytes) {
      throw new StateTooLargeException(
        s"Key group $group has more than 1 GiB of state in one partition: raise the number of key groups " +
          "(maxParallelism), or the state of one key is too large.")
    }
    reserve(size.toInt)
    System.arraycopy(name, 0, bytes, position, name.length)
    position += name.length
    bytes(position) = (flags | (if (sameKeys) UniformKeys else 0) | (if (sameValues) UniformValues else 0)).toByte
    position += 1
    putInt(n)
    section = new SectionLayout(bytes, n, sameKeys, sameValues, position)
    sections += 1
  }

  /** Brings the entries of the section, which is complete, into the order of their keys' hashes. */
  def orderSection(): Unit = {
    if (order == null) order = new HashOrder
    if (order.sort(bytes, section, position)) ordered += 1 else unordered += 1
  }

  def putInt(x: Int): Unit = {
    ListCursor.putInt(bytes, Platform.BYTE_ARRAY_OFFSET + position, x)
    position += 4
  }

  def putInts(xs: Array[Int], n: Int): Unit = {
    var i = 0
    while (i < n) {
      putInt(xs(i))
      i += 1
    }
  }

  /** Number of sections that were to be ordered and are not. */
  def unorderedSections: Long = unordered

  /** Number of blocks that were written with a compressed body. */
  def compressedBlocks: Long = compressed

  /** Completes the block with its header and checksum, and writes it; returns its length. */
  def writeTo(out: OutputStream, group: Int, isBase: Boolean, version: Long): Int = {
    // Rows of an ordered section can be looked up, if they are not compressed with all others.
    val chunkBits = if (sections == 1 && ordered == 1) ChunkBits else 0
    val packedLength = pack(chunkBits != 0)
    if (packedLength == 0) {
      writeHeader(BlockCodec.Uncompressed, 0, group, isBase, version, bytes, HeaderBytes, position - HeaderBytes)
      out.write(bytes, 0, position)
      position
    } else {
      compressed += 1
      writeHeader(codec, chunkBits, group, isBase, version, packed, 0, packedLength)
      out.write(bytes, 0, HeaderBytes)
      out.write(packed, 0, packedLength)
      HeaderBytes + packedLength
    }
  }

  /** Compresses the body; returns its new length with what precedes it, 0 if it stays as it is. */
  private def pack(inChunks: Boolean): Int = {
    val length = position - HeaderBytes
    codec match {
      case compressor: BlockCompressor if length >= MinCompressed =>
        val total = if (inChunks) packInChunks(compressor, length) else packWhole(compressor, length)
        if (total < length) total else 0
      case _ => 0
    }
  }

  private def packInChunks(compressor: BlockCompressor, length: Int): Int = {
    reservePacked(Chunks.bound(compressor, length))
    Chunks.compress(compressor, bytes, HeaderBytes, length, packed)
  }

  private def packWhole(compressor: BlockCompressor, length: Int): Int = {
    reservePacked(PlainLengthBytes + compressor.bound(length))
    ListCursor.putInt(packed, Platform.BYTE_ARRAY_OFFSET, length)
    PlainLengthBytes + compressor.compress(bytes, HeaderBytes, length, packed, PlainLengthBytes)
  }

  private def reservePacked(size: Int): Unit = if (packed.length < size) packed = new Array[Byte](size)

  private def writeHeader(
      of: BlockCodec,
      chunkBits: Int,
      group: Int,
      isBase: Boolean,
      version: Long,
      body: Array[Byte],
      offset: Int,
      length: Int): Unit = {
    val end = position
    position = 0
    putInt(Magic)
    putInt((Version << 24) | ((if (isBase) KindBase else KindDelta) << 16) | (of.id << 8) | chunkBits)
    putInt(group)
    putInt((version >>> 32).toInt)
    putInt(version.toInt)
    putInt(sections)
    putInt(length)
    checksum.reset()
    checksum.update(bytes, 0, ChecksumAt)
    checksum.update(body, offset, length)
    putInt(checksum.getValue.toInt)
    position = end
  }

  private var lastFamily: String = _
  private var lastName: Array[Byte] = _

  private def encodedName(family: String): Array[Byte] = {
    if (family != lastFamily) {
      val name = new ByteArrayOutputStream
      new DataOutputStream(name).writeUTF(writtenName(family))
      lastName = name.toByteArray
      lastFamily = family
    }
    lastName
  }

  private def reserve(size: Int): Unit = {
    if (position + size > bytes.length) {
      val length = math.max(position + size.toLong, bytes.length * 2L)
      bytes = Arrays.copyOf(bytes, math.min(maxBlockBytes.toLong, length).toInt)
    }
  }
}
