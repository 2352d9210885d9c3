// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment


/** Constants of the segment format, docs/protocol.md section 2. */
private[engine] object SegmentFormat {

  /** "CKBG". */
  final val Magic = SegmentConstants.Magic
  final val Version = SegmentConstants.Version
  final val KindBase = SegmentConstants.KindBase
  final val KindDelta = SegmentConstants.KindDelta

  final val HeaderBytes = SegmentConstants.HeaderBytes
  final val CodecAt = 6
  final val ChunkBitsAt = 7
  final val KeyGroupAt = 8
  final val StateVersionAt = 12
  final val SectionsAt = 20
  final val BodyLengthAt = 24
  final val ChecksumAt = 28

  /** Bytes before a compressed body: the length of the body. */
  final val PlainLengthBytes = 4

  /** Logarithm to base 2 of the bytes of a chunk that writers use: 8 KiB. A lookup decompresses three or four. */
  final val ChunkBits = 13

  /** Smallest and largest such logarithm. */
  final val MinChunkBits = 10
  final val MaxChunkBits = 24

  /** Least bytes of a body to compress. */
  final val MinCompressed = 64

  final val Lists = 1
  final val UniformKeys = 2
  final val UniformValues = 4
  final val Appends = 8
  final val AllFlags = 15

  /** Largest block, with some room below the limit of arrays. */
  final val MaxBlockBytes = 1 << 30

  /** As [[MaxBlockBytes]]; tests of the limit lower it. */
  @volatile private[engine] var maxBlockBytes: Int = MaxBlockBytes

  /** Room in a block for all but the key and the value of its only row: header, name of the family, lengths. */
  private final val RowOverhead = 1 << 17

  /** Most bytes of a key with its value, which have to fit into one block. */
  def maxRowBytes: Long = maxBlockBytes.toLong - RowOverhead

  /** Largest segment in one array. */
  final val MaxInMemoryBytes = 1 << 30

  /** Name of Spark's default column family; it is the empty string in segments. */
  final val DefaultFamily = "default"

  def writtenName(family: String): String = if (family == DefaultFamily) "" else family

  def familyName(written: String): String = if (written.isEmpty) DefaultFamily else written
}
