// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

import io.github.sparkckpt.engine.bytes.ListCursor

import org.apache.spark.unsafe.Platform

/**
 * Chunks of a compressed body (docs/protocol.md section 2). Each is compressed by itself, so that a reader of some rows
 * decompresses only the chunks that have them.
 *
 * @param codec codec of the chunks
 * @param bits  logarithm to base 2 of the bytes of a chunk
 * @param plain bytes of the body before compression
 * @param ends  end of each chunk as stored, after the start of the first one
 */
private[engine] final class Chunks private (codec: BlockCompressor, bits: Int, val plain: Int, ends: Array[Int]) {

  /** Bytes of memory. */
  def memoryBytes: Long = Chunks.ObjectBytes + 4L * ends.length

  /** Number of chunks. */
  def count: Int = ends.length

  /** Bytes from the start of the stored body to the first chunk. */
  def headBytes: Int = Chunks.headBytes(count)

  /** Most bytes of a chunk before compression. */
  def chunkBytes: Int = 1 << bits

  /** Chunk that has a position of the body before compression. */
  def chunkAt(position: Int): Int = position >>> bits

  /** Position of the first byte of a chunk in the body before compression. */
  def startOf(chunk: Int): Int = chunk << bits

  /** Start of a chunk as stored, after that of the first one; that of `count` is the end of the last. */
  def storedStart(chunk: Int): Int = if (chunk == 0) 0 else ends(chunk - 1)

  /** Bytes of a chunk before compression. */
  def plainBytes(chunk: Int): Int = Math.min(plain - startOf(chunk), chunkBytes)

  /**
   * Restores a chunk.
   *
   * @param from where the chunk is, at `offset`
   * @return false for nonsense
   */
  def restore(chunk: Int, from: Array[Byte], offset: Int, to: Array[Byte], toOffset: Int): Boolean = {
    val stored = storedStart(chunk + 1) - storedStart(chunk)
    val wanted = plainBytes(chunk)
    if (stored == wanted) {
      System.arraycopy(from, offset, to, toOffset, wanted)
      true
    } else {
      codec.decompress(from, offset, stored, to, toOffset, wanted) == wanted
    }
  }
}

private[engine] object Chunks {
  import SegmentFormat._

  private final val ObjectBytes = 48L

  /** Bytes before the first of this many chunks. */
  private def headBytes(count: Int): Int = PlainLengthBytes + 4 * count

  private def countOf(plain: Int, bits: Int): Int = ((plain.toLong + (1L << bits) - 1) >>> bits).toInt

  /** Most bytes of a body that is cut into chunks, as stored. */
  def bound(codec: BlockCompressor, length: Int): Int = {
    val count = countOf(length, ChunkBits)
    Math.addExact(headBytes(count), Math.multiplyExact(count, codec.bound(1 << ChunkBits)))
  }

  /** Compresses a body in chunks into an array with room for [[bound]]; returns their bytes with what precedes them. */
  def compress(codec: BlockCompressor, from: Array[Byte], offset: Int, length: Int, to: Array[Byte]): Int = {
    val count = countOf(length, ChunkBits)
    putInt(to, 0, length)
    var at = headBytes(count)
    var i = 0
    while (i < count) {
      val start = i << ChunkBits
      val plain = Math.min(length - start, 1 << ChunkBits)
      var stored = codec.compress(from, offset + start, plain, to, at)
      if (stored >= plain) {
        System.arraycopy(from, offset + start, to, at, plain)
        stored = plain
      }
      putInt(to, PlainLengthBytes + 4 * i, stored)
      at += stored
      i += 1
    }
    at
  }

  /**
   * Chunks of a stored body.
   *
   * @param bytes  array with the body, from `offset` on
   * @param length bytes of the body as stored
   * @param fail   reports a body that makes no sense
   */
  def read(
      codec: BlockCompressor,
      bits: Int,
      bytes: Array[Byte],
      offset: Int,
      length: Int,
      fail: String => Nothing): Chunks = {
    if (bits < MinChunkBits || bits > MaxChunkBits) fail(s"chunks of 2^$bits bytes")
    val plain = if (length < PlainLengthBytes) -1 else int(bytes, offset)
    if (plain < 0 || plain > maxBlockBytes) fail(s"a compressed body of $plain bytes")
    val count = countOf(plain, bits)
    if (length < headBytes(count)) fail(s"a body of $length bytes cannot have $count chunks")
    val ends = new Array[Int](count)
    var end = 0L
    var i = 0
    while (i < count) {
      val stored = int(bytes, offset + PlainLengthBytes + 4 * i)
      if (stored <= 0 || stored > (1 << bits)) fail(s"a chunk of $stored bytes")
      end += stored
      if (end > length) fail(s"chunks of more than the $length bytes of their body")
      ends(i) = end.toInt
      i += 1
    }
    if (headBytes(count) + end != length) fail(s"chunks of $end bytes in a body of $length")
    new Chunks(codec, bits, plain, ends)
  }

  private def int(bytes: Array[Byte], at: Int): Int = ListCursor.getInt(bytes, Platform.BYTE_ARRAY_OFFSET.toLong + at)

  private def putInt(bytes: Array[Byte], at: Int, x: Int): Unit =
    ListCursor.putInt(bytes, Platform.BYTE_ARRAY_OFFSET.toLong + at, x)
}
