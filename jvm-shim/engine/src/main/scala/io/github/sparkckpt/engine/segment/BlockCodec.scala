// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

import com.github.luben.zstd.{Zstd, ZstdException}
import net.jpountz.lz4.{LZ4Exception, LZ4Factory}

/**
 * Codec of the bodies of blocks (docs/protocol.md section 2), from the libraries that Spark brings.
 *
 * @param id   its byte in a block's header
 * @param name its name in the setting `compression`
 */
sealed abstract class BlockCodec(val id: Int, val name: String)

/** A codec that makes bodies smaller. */
sealed abstract class BlockCompressor(id: Int, name: String) extends BlockCodec(id, name) {

  /** Largest number of bytes that `compress` may write. */
  def bound(length: Int): Int

  /** Compresses bytes into an array, from `toOffset` on; returns their number there. */
  def compress(from: Array[Byte], offset: Int, length: Int, to: Array[Byte], toOffset: Int): Int

  /** Restores bytes into an array, from `toOffset` on; returns their number, at most `toLength`, or -1 for nonsense. */
  def decompress(from: Array[Byte], offset: Int, length: Int, to: Array[Byte], toOffset: Int, toLength: Int): Int
}

object BlockCodec {

  /** Bodies are as they are. */
  case object Uncompressed extends BlockCodec(0, "none")

  /** LZ4's block format. */
  case object Lz4 extends BlockCompressor(1, "lz4") {
    private lazy val factory = LZ4Factory.fastestInstance()
    private lazy val compressor = factory.fastCompressor()
    private lazy val decompressor = factory.safeDecompressor()

    override def bound(length: Int): Int = compressor.maxCompressedLength(length)

    override def compress(from: Array[Byte], offset: Int, length: Int, to: Array[Byte], toOffset: Int): Int =
      compressor.compress(from, offset, length, to, toOffset, to.length - toOffset)

    override def decompress(
        from: Array[Byte], offset: Int, length: Int, to: Array[Byte], toOffset: Int, toLength: Int): Int =
      try decompressor.decompress(from, offset, length, to, toOffset, toLength) catch { case _: LZ4Exception => -1 }
  }

  /** A Zstandard frame. */
  case object Zstandard extends BlockCompressor(2, "zstd") {

    /** As `spark.io.compression.zstd.level`. */
    private final val Level = 1

    override def bound(length: Int): Int = Math.toIntExact(Zstd.compressBound(length))

    override def compress(from: Array[Byte], offset: Int, length: Int, to: Array[Byte], toOffset: Int): Int =
      Math.toIntExact(Zstd.compressByteArray(to, toOffset, to.length - toOffset, from, offset, length, Level))

    override def decompress(
        from: Array[Byte], offset: Int, length: Int, to: Array[Byte], toOffset: Int, toLength: Int): Int =
      try Zstd.decompressByteArray(to, toOffset, toLength, from, offset, length).toInt
      catch { case _: ZstdException => -1 }
  }

  val All: Seq[BlockCodec] = Seq(Uncompressed, Lz4, Zstandard)

  private val byId = All.map(codec => codec.id -> codec).toMap

  /** Codec of a block, None for an unknown one. */
  def of(id: Int): Option[BlockCodec] = byId.get(id)

  def named(name: String): Option[BlockCodec] = All.find(_.name == name)
}
