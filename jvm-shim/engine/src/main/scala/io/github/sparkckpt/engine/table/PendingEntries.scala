// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.table

import java.util.Arrays

/**
 * Entries of a [[HashIndex]] to be built once all of them are known. An index that grows entry by entry misses the
 * cache for nearly each of them; one that is built part by part does not. So they are divided by its parts already.
 *
 * @param bits upper bits of a hash that tell its part
 * @param expected expected number of entries
 */
private[engine] final class PendingEntries private (val bits: Int, expected: Long) {
  import PendingEntries._

  // Each entry is a long, hash above value, as in the index.
  private val parts = new Array[Array[Long]](1 << bits)
  private val counts = new Array[Int](1 << bits)
  private var size = 0L
  private var capacity = 0L

  def this(expected: Long) = this(HashIndex.bitsFor(expected), expected)

  /** Number of entries. */
  def count: Long = size

  /** Number of entries of a part. */
  def count(part: Int): Int = counts(part)

  /** Bytes of memory. */
  def bytes: Long = capacity * 8 + parts.length * 8L

  def add(hash: Int, value: Int): Unit = add((hash.toLong << 32) | (value & 0xFFFFFFFFL))

  private def add(entry: Long): Unit = {
    val part = HashIndex.partOf((entry >>> 32).toInt, bits)
    var entries = parts(part)
    val n = counts(part)
    if (entries == null || n == entries.length) entries = grown(part)
    entries(n) = entry
    counts(part) = n + 1
    size += 1
  }

  private def grown(part: Int): Array[Long] = {
    val before = parts(part)
    // Hashes spread evenly: few parts have more than this.
    val after =
      if (before == null) new Array[Long](math.max(MinRoom, ((expected >>> bits) * 33 / 32).toInt))
      else Arrays.copyOf(before, Math.addExact(before.length, math.max(MinRoom, before.length / 2)))
    capacity += after.length - (if (before == null) 0 else before.length)
    parts(part) = after
    after
  }

  /** Gives the entries of a part away, in the first elements; null if there are none. */
  def take(part: Int): Array[Long] = {
    val entries = parts(part)
    if (entries != null) capacity -= entries.length
    parts(part) = null
    size -= counts(part)
    counts(part) = 0
    entries
  }

  /** Moves the entries of a part. */
  def addTo(part: Int, other: PendingEntries): Unit = {
    val n = counts(part)
    val entries = take(part)
    var i = 0
    while (i < n) {
      other.add(entries(i))
      i += 1
    }
  }

  /** These entries, divided by another number of bits. There are none here afterwards, unless that is the number. */
  def dividedBy(wanted: Int): PendingEntries =
    if (wanted == bits) {
      this
    } else {
      val other = new PendingEntries(wanted, size)
      var part = 0
      while (part < parts.length) {
        addTo(part, other)
        part += 1
      }
      other
    }

  /** Calls a function with hash and value of each entry. */
  def foreach(body: (Int, Int) => Unit): Unit = {
    var part = 0
    while (part < parts.length) {
      var i = 0
      while (i < counts(part)) {
        body((parts(part)(i) >>> 32).toInt, parts(part)(i).toInt)
        i += 1
      }
      part += 1
    }
  }
}

private object PendingEntries {
  private final val MinRoom = 64
}
