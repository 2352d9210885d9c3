// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

import java.io.{ByteArrayInputStream, DataInputStream, IOException}
import java.util.zip.CRC32C

import io.github.sparkckpt.engine.bytes.ListCursor

import org.apache.spark.unsafe.Platform

/** Receiver of the contents that a [[SegmentReader]] reads. */
private[engine] trait SegmentSink {

  /** Target of a family's entries; null if it has single values and lists come, or the reverse. */
  def target(family: String, multiValue: Boolean): SegmentTarget
}

/** Receiver of one family's entries. The bytes are valid only during the call. */
private[engine] trait SegmentTarget {

  /** Value of a new or existing key. */
  def put(
      keyGroup: Int,
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      valueBase: AnyRef,
      valueOffset: Long,
      valueLength: Int): Unit

  /** Rows to append to the list of a key; false for a new key. */
  def append(
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      rows: Int,
      rowsBase: AnyRef,
      rowsOffset: Long,
      rowsLength: Int): Boolean

  /** Key to remove, if present. */
  def remove(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit
}

/**
 * Loader of segments' blocks into tables. Every byte is checked before use: by the block's CRC32C and, for lengths that
 * could mislead, by bounds.
 *
 * It reads ahead in windows, because a request may take tens of milliseconds, and the blocks of a subtask are small and
 * adjacent. Not thread-safe.
 *
 * @param filter expected key groups
 * @param window bytes per read
 */
private[engine] final class SegmentReader(sink: SegmentSink, filter: RestoreFilter, window: Int = 1 << 24) {
  import SegmentFormat._

  private val checksum = new CRC32C
  private var buffer = new Array[Byte](0)
  private var bufferStart = 0L
  private var bufferCount = 0

  // The current segment and block.
  private var rowFilter: RowFilter = _
  private var source: ByteSource = _
  private var blockOffset = 0L
  // The body of the block: in `buffer`, or restored from it.
  private var body: Array[Byte] = _
  private var bodyStart = 0
  private var position = 0
  private var end = 0
  private var restored = new Array[Byte](0)
  // The chunks of the body, if it has some: where the first is in `buffer`, and how many are in `restored`.
  private var chunks: Chunks = _
  private var chunksAt = 0
  private var chunksRestored = 0
  private var sectionFlags: Byte = 0

  private var segment: StateSegment = _
  private var last = 0L
  private var tail = 0L
  private var lastName: String = _

  /** Bytes of memory, estimated during a load. */
  def memoryBytes: Long = buffer.length.toLong + restored.length

  /**
   * Loads the blocks of a segment.
   *
   * @param newest highest version that a block may have
   * @throws StateStreamDamagedException if the contents were changed after they were written
   */
  def load(segment: StateSegment, newest: Long): Unit = {
    start(segment)
    var i = 0
    while (i < segment.offsets.length) {
      loadBlock(i, newest)
      i += 1
    }
  }

  /** Begins to load a segment block by block. */
  def start(segment: StateSegment): Unit = {
    this.segment = segment
    source = segment.source
    rowFilter = segment.rows
    bufferStart = 0
    bufferCount = 0
    val n = segment.offsets.length
    last = if (n == 0) 0L else segment.offsets(n - 1)
    tail = SegmentReader.likelyEnd(segment.offsets) - last
  }

  /**
   * Loads one block of the segment. The bytes that its targets receive stay valid until the next block.
   *
   * @param index  position among the segment's offsets
   * @param newest highest version that the block may have
   * @throws StateStreamDamagedException if the contents were changed after they were written
   */
  def loadBlock(index: Int, newest: Long): Unit = {
    blockOffset = segment.offsets(index)
    loadBlock(segment.isBase, newest, last)
  }

  /**
   * Reads and checks one block of the segment, and tells the places of its rows, for reads of single ones.
   *
   * @param index  position among the segment's offsets
   * @param newest highest version that the block may have
   * @return None if it is compressed as a whole, or its rows are not single values of one column family
   * @throws StateStreamDamagedException if the contents were changed after they were written
   */
  def placesOf(index: Int, newest: Long): Option[RowPlaces] = {
    blockOffset = segment.offsets(index)
    readBlock(segment.isBase, newest, last)
    val codec = BlockCodec.of(buffer(position + CodecAt)).get
    val bits = buffer(position + ChunkBitsAt).toInt
    if (int(position + SectionsAt) != 1 || (codec != BlockCodec.Uncompressed && bits == 0)) {
      None
    } else {
      openBody(codec, bits, position + HeaderBytes, int(position + BodyLengthAt), isWhole = false)
      restoreLengths()
      val name = familyName(readName())
      val section = startSection(segment.isBase)
      if ((sectionFlags & Lists) != 0) {
        None
      } else {
        val start = blockOffset + HeaderBytes
        val stored =
          if (chunks == null) new BlockBody.Plain(source, start) else new BlockBody.Chunked(source, start, chunks)
        Some(RowPlaces.of(stored, name, section, bodyStart, end, fail(_)))
      }
    }
  }

  private def loadBlock(isBase: Boolean, newest: Long, lastOffset: Long): Unit = {
    readBlock(isBase, newest, lastOffset)
    val group = int(position + KeyGroupAt)
    val sections = int(position + SectionsAt)
    openBody(BlockCodec.of(buffer(position + CodecAt)).get, buffer(position + ChunkBitsAt).toInt,
      position + HeaderBytes, int(position + BodyLengthAt), isWhole = true)
    var s = 0
    while (s < sections) {
      loadSection(group, isBase)
      s += 1
    }
    if (position != end) fail(end - position, s"${end - position} bytes follow the last section")
  }

  /** Reads a block into the buffer, from `position` until `end`, and checks all of it but its sections. */
  private def readBlock(isBase: Boolean, newest: Long, lastOffset: Long): Unit = {
    if (blockOffset < 0) fail(0, s"a block begins at the negative offset $blockOffset")
    val start = fetch(HeaderBytes, lastOffset)
    val magic = int(start)
    if (magic != Magic) fail(0, f"magic number 0x$magic%08x instead of 0x$Magic%08x")
    val length = int(start + BodyLengthAt)
    if (length < 0 || length > maxBlockBytes || length > source.length - blockOffset - HeaderBytes) {
      fail(BodyLengthAt, s"the block has $length bytes by its header, but the stream has ${source.length}")
    }
    position = fetch(HeaderBytes + length, lastOffset)
    end = position + HeaderBytes + length
    checksum.reset()
    checksum.update(buffer, position, ChecksumAt)
    checksum.update(buffer, position + HeaderBytes, length)
    if (checksum.getValue.toInt != int(position + ChecksumAt)) {
      fail(ChecksumAt, "wrong block checksum")
    }
    checkHeader(isBase, newest)
    val sections = int(position + SectionsAt)
    if (sections < 0) fail(SectionsAt, s"the block has $sections sections by its header")
  }

  /**
   * Makes the body readable, without compression, from `position` until `end`.
   *
   * @param bits    logarithm of the bytes of a chunk; 0 if the body is not cut
   * @param isWhole false if the reader says by [[restoreFor]] which part of a body in chunks it needs
   */
  private def openBody(codec: BlockCodec, bits: Int, start: Int, length: Int, isWhole: Boolean): Unit = codec match {
    case compressor: BlockCompressor if bits != 0 =>
      chunks = Chunks.read(compressor, bits, buffer, start, length, what => fail(HeaderBytes, what))
      chunksAt = start + chunks.headBytes
      chunksRestored = 0
      if (restored.length < chunks.plain) restored = new Array[Byte](chunks.plain)
      body = restored
      bodyStart = 0
      position = 0
      end = chunks.plain
      if (isWhole) restoreFor(end)
    case compressor: BlockCompressor =>
      chunks = null
      val plain = if (length < PlainLengthBytes) -1 else int(start)
      if (plain < 0 || plain > maxBlockBytes) fail(HeaderBytes, s"a compressed body of $plain bytes")
      if (restored.length < plain) restored = new Array[Byte](plain)
      val count = compressor.decompress(
        buffer, start + PlainLengthBytes, length - PlainLengthBytes, restored, 0, plain)
      if (count != plain) {
        fail(HeaderBytes, s"the body does not decompress to $plain bytes with ${compressor.name}")
      }
      body = restored
      bodyStart = 0
      position = 0
      end = plain
    case _ =>
      chunks = null
      body = buffer
      bodyStart = start
      position = start
      end = start + length
  }

  /** Restores the chunks that have the first bytes of the body, or all of it if it has fewer. */
  private def restoreFor(bytes: Long): Unit = if (chunks != null) {
    val wanted = Math.min(bytes, chunks.plain)
    while (chunks.startOf(chunksRestored) < wanted) {
      val at = chunksAt + chunks.storedStart(chunksRestored)
      if (!chunks.restore(chunksRestored, buffer, at, restored, chunks.startOf(chunksRestored))) {
        fail(HeaderBytes, s"chunk $chunksRestored of the body does not decompress")
      }
      chunksRestored += 1
    }
  }

  /** Restores the part of a body in chunks that precedes the keys of its first section. */
  private def restoreLengths(): Unit = if (chunks != null) {
    restoreFor(2)
    need(2)
    val head = 2 + nameLength + 5
    restoreFor(head)
    need(head)
    val flags = body(head - 5)
    val n = bodyInt(head - 4).toLong
    restoreFor(head + (if ((flags & UniformKeys) != 0) 4 else 4 * n) + (if ((flags & UniformValues) != 0) 4 else 4 * n))
  }

  private def checkHeader(isBase: Boolean, newest: Long): Unit = {
    val format = buffer(position + 4)
    if (format != Version) fail(4, s"unknown block format version $format; $Version is supported")
    val kind = buffer(position + 5)
    val wanted = if (isBase) KindBase else KindDelta
    if (kind != wanted) fail(5, s"block kind $kind instead of $wanted")
    val codec = buffer(position + CodecAt)
    if (BlockCodec.of(codec).isEmpty) fail(CodecAt, s"unknown block codec $codec")
    val bits = buffer(position + ChunkBitsAt)
    if (bits != 0 && codec == BlockCodec.Uncompressed.id) fail(ChunkBitsAt, s"chunks of 2^$bits bytes without a codec")
    val group = int(position + KeyGroupAt)
    if (group < 0 || !filter.acceptsKeyGroup(group)) {
      fail(KeyGroupAt, s"unexpected key group $group")
    }
    val upper = int(position + StateVersionAt).toLong
    val version = (upper << 32) | (int(position + StateVersionAt + 4) & 0xFFFFFFFFL)
    if (version > newest) {
      fail(StateVersionAt, s"block of state version $version, newer than $newest")
    }
  }

  /** Reads a section from its flags until its keys. */
  private def startSection(isBase: Boolean): SectionLayout = {
    need(5)
    val flags = body(position)
    sectionFlags = flags
    if ((flags & ~AllFlags) != 0) fail("unknown flags")
    if ((flags & Appends) != 0 && (isBase || (flags & Lists) == 0)) {
      fail("rows are appended in a base or to a single value")
    }
    position += 1
    val n = bodyInt(position)
    position += 4
    val sameKeys = (flags & UniformKeys) != 0
    val sameValues = (flags & UniformValues) != 0
    if (n < 0) fail(s"a section has $n entries")
    need((if (sameKeys) 4L else 4L * n) + (if (sameValues) 4L else 4L * n))
    val section = new SectionLayout(body, n, sameKeys, sameValues, position)
    position = section.keysAt
    section
  }

  private def loadSection(group: Int, isBase: Boolean): Unit = {
    val name = readName()
    val section = startSection(isBase)
    val appends = (sectionFlags & Appends) != 0
    val lists = (sectionFlags & Lists) != 0
    val n = section.rows
    val sameKeys = section.sameKeys
    val sameValues = section.sameValues
    val keyLengths = section.keyLengthsAt
    val valueLengths = section.valueLengthsAt
    val target = sink.target(familyName(name), lists)
    if (target == null) fail(s"column family '$name' holds lists in one place and single values in another")
    var keyBytes = 0L
    var i = 0
    if (sameKeys) {
      val length = checkedKeyLength(bodyInt(keyLengths))
      if (length == 0 && n > 1) fail(s"$n entries have the empty key")
      keyBytes = n.toLong * length
    } else {
      while (i < n) {
        keyBytes += checkedKeyLength(bodyInt(keyLengths + 4 * i))
        i += 1
      }
    }
    need(keyBytes)
    var keyAt = Platform.BYTE_ARRAY_OFFSET.toLong + position
    position += keyBytes.toInt
    i = 0
    while (i < n) {
      val keyLength = bodyInt(if (sameKeys) keyLengths else keyLengths + 4 * i)
      val valueLength = bodyInt(if (sameValues) valueLengths else valueLengths + 4 * i)
      val shortest = if (isBase || appends) 0 else -1
      if (valueLength < shortest || (lists && !appends && valueLength >= 0 && valueLength < 4)) {
        fail(s"a value has length $valueLength")
      }
      if (valueLength > 0) need(valueLength)
      if ((rowFilter eq RowFilter.All) || rowFilter.accepts(familyName(name), body, keyAt, keyLength)) {
        val valueAt = Platform.BYTE_ARRAY_OFFSET.toLong + position
        if (valueLength < 0) {
          target.remove(body, keyAt, keyLength)
        } else if (appends) {
          val rows = countRows(valueLength)
          if (!target.append(body, keyAt, keyLength, rows, body, valueAt, valueLength)) {
            fail("rows are appended to a missing key")
          }
        } else {
          target.put(group, body, keyAt, keyLength, body, valueAt, valueLength)
        }
      }
      if (valueLength > 0) position += valueLength
      keyAt += keyLength
      i += 1
    }
  }

  /** The rows in the bytes from the position on, each behind its length. */
  private def countRows(length: Int): Int = {
    val until = position + length
    var at = position
    var rows = 0
    while (at < until) {
      val rowLength = if (until - at < 4) -1 else bodyInt(at)
      if (rowLength < 0 || rowLength > until - at - 4) fail(s"an appended row is truncated or has length $rowLength")
      at += 4 + rowLength
      rows += 1
    }
    rows
  }

  private def checkedKeyLength(length: Int): Int = {
    if (length < 0 || (length & 7) != 0) fail(s"a key has length $length")
    length
  }

  private def readName(): String = {
    need(2)
    val length = nameLength
    need(2L + length)
    val name =
      if (length == 0) {
        ""
      } else {
        try {
          new DataInputStream(new ByteArrayInputStream(body, position, 2 + length)).readUTF()
        } catch {
          case e: IOException => throw damaged(0, "the name of a column family is not text", e)
        }
      }
    position += 2 + length
    // One instance per name, for a short look-up in the sink.
    if (name != lastName) lastName = name
    lastName
  }

  private def nameLength: Int = ((body(position) & 0xFF) << 8) | (body(position + 1) & 0xFF)

  private def need(bytes: Long): Unit = {
    if (bytes > end - position) fail("a section is longer than its block")
  }

  /** Fills the buffer with this many bytes from the start of the block; returns their start. */
  private def fetch(count: Int, lastOffset: Long): Int = {
    val at = blockOffset - bufferStart
    if (at < 0 || at + count > bufferCount) {
      if (blockOffset + count > source.length) {
        fail(0, s"the block needs $count bytes, but the stream has ${source.length}")
      }
      // Reads ahead only a little beyond the start of the last block.
      val ahead = math.min(window.toLong, lastOffset - blockOffset + tail)
      val n = math.min(math.max(count.toLong, ahead), source.length - blockOffset).toInt
      // Some more than needed: blocks of one segment differ a little.
      if (n > buffer.length) buffer = new Array[Byte](n + n / 8)
      bufferCount = 0
      try {
        source.readFully(blockOffset, buffer, 0, n)
      } catch {
        case e: java.io.EOFException => throw damaged(0, "the stream ends early", e)
      }
      bufferStart = blockOffset
      bufferCount = n
    }
    (blockOffset - bufferStart).toInt
  }

  private def int(at: Int): Int = ListCursor.getInt(buffer, Platform.BYTE_ARRAY_OFFSET.toLong + at)

  private def bodyInt(at: Int): Int = ListCursor.getInt(body, Platform.BYTE_ARRAY_OFFSET.toLong + at)

  /** At the current position, which is that before compression. */
  private def fail(what: String): Nothing = fail(HeaderBytes + position - bodyStart, what)

  private def fail(inBlock: Int, what: String): Nothing = throw damaged(inBlock, what, null)

  private def damaged(inBlock: Int, what: String, cause: Throwable): StateStreamDamagedException =
    new StateStreamDamagedException(source.name, blockOffset + inBlock, what, cause)
}

object SegmentReader {

  /** Least bytes to read beyond the start of the last block. */
  final val TailBytes = 1L << 16

  /**
   * Position up to which a segment is read ahead; its file may end before. The length of the last block is unknown, and
   * assumed to be like the others'.
   *
   * @param offsets starts of the blocks, ascending
   */
  def likelyEnd(offsets: Array[Long]): Long = offsets.length match {
    case 0 => TailBytes
    case 1 => offsets(0) + TailBytes
    case n => offsets(n - 1) + TailBytes + 2 * (offsets(n - 1) - offsets(0)) / (n - 1)
  }
}
