// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

import scala.collection.mutable

import io.github.sparkckpt.engine.bytes.ListCursor

import org.apache.spark.unsafe.Platform

/**
 * Number of a family's rows and a digest of them, independent of the order of keys: the sum of one hash per row over
 * key, value and, in a list, the place in it. Not thread-safe.
 */
final class RowDigest {
  private var count = 0L
  private var hashes = 0L

  def rows: Long = count

  def sum: Long = hashes

  /** @param place of the row in the list of its key, from 0; 0 outside lists */
  def add(
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      place: Int,
      valueBase: AnyRef,
      valueOffset: Long,
      valueLength: Int): Unit = {
    // The lengths come first, so no two rows have the same words.
    val start = RowDigest.step(RowDigest.step(RowDigest.Seed, place), (keyLength.toLong << 32) | valueLength)
    val ofKey = RowDigest.hash(keyBase, keyOffset, keyLength, start)
    hashes += RowDigest.mixed(RowDigest.hash(valueBase, valueOffset, valueLength, ofKey))
    count += 1
  }
}

/**
 * A hash of 64 bits over words, for rows of a few words. Each step is a bijection of the hash and of the word, so rows
 * that differ in one word never have the same.
 */
private object RowDigest {
  private final val Seed = 42L
  private final val Multiplier = 0x9E3779B97F4A7C15L

  private def step(hash: Long, word: Long): Long = java.lang.Long.rotateLeft((hash ^ word) * Multiplier, 29)

  /** Hash of the words; a rest of less than 8 bytes is a word with zeros. */
  private def hash(base: AnyRef, offset: Long, length: Int, seed: Long): Long = {
    val end = offset + length
    val words = offset + (length & ~7)
    var h = seed
    var at = offset
    while (at < words) {
      h = step(h, Platform.getLong(base, at))
      at += 8
    }
    if (at < end) {
      var rest = 0L
      while (at < end) {
        rest = (rest << 8) | (Platform.getByte(base, at) & 0xFF)
        at += 1
      }
      h = step(h, rest)
    }
    h
  }

  /** The end of MurmurHash3: each bit depends on all. */
  private def mixed(hash: Long): Long = {
    var h = hash
    h = (h ^ (h >>> 33)) * 0xFF51AFD7ED558CCDL
    h = (h ^ (h >>> 33)) * 0xC4CEB9FE1A85EC53L
    h ^ (h >>> 33)
  }
}

object SegmentDigests {
  /** Bytes per read: a file that was just written is in the cache of the operating system. */
  private final val ReadBytes = 1 << 20

  /**
   * Digests of a base segment's rows, by column family.
   *
   * @param newest highest version that a block may have
   * @throws StateStreamDamagedException if a block is damaged
   */
  def of(segment: StateSegment, newest: Long): Map[String, RowDigest] = {
    val digests = mutable.HashMap.empty[String, RowDigest]
    val sink: SegmentSink = (family, multiValue) =>
      new DigestTarget(digests.getOrElseUpdate(family, new RowDigest), multiValue)
    new SegmentReader(sink, RestoreFilter.range(0, Int.MaxValue - 1), ReadBytes).load(segment, newest)
    digests.toMap
  }

  private final class DigestTarget(digest: RowDigest, multiValue: Boolean) extends SegmentTarget {
    private val cursor = new ListCursor

    override def put(
        keyGroup: Int,
        keyBase: AnyRef,
        keyOffset: Long,
        keyLength: Int,
        valueBase: AnyRef,
        valueOffset: Long,
        valueLength: Int): Unit =
      if (multiValue) {
        cursor.reset(valueBase, valueOffset, valueLength)
        var place = 0
        while (cursor.advance()) {
          digest.add(keyBase, keyOffset, keyLength, place, cursor.rowBase, cursor.rowOffset, cursor.rowLength)
          place += 1
        }
      } else {
        digest.add(keyBase, keyOffset, keyLength, 0, valueBase, valueOffset, valueLength)
      }

    override def append(
        keyBase: AnyRef,
        keyOffset: Long,
        keyLength: Int,
        rows: Int,
        rowsBase: AnyRef,
        rowsOffset: Long,
        rowsLength: Int): Boolean = throw new IllegalStateException("a base has no appended rows")

    override def remove(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit =
      throw new IllegalStateException("a base has no removed keys")
  }
}
