// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.table

import java.util.Arrays

/**
 * Map from 32-bit hashes to 32-bit values other than 0; a hash can have several. Callers compare the keys.
 *
 * Open addressing with linear probing. A slot is a long, the hash above the value, so a lookup touches one cache line
 * of the index and compares a key only if all 32 bits of the hash agree; growing never reads a key.
 *
 * The slots are divided into parts of at most 128 KiB by the upper bits of the hash (extendible hashing): a full part
 * splits alone, so no insert waits for a copy of the whole index. Large parts grow in steps of about a quarter, so an
 * entry of a large index takes 11 to 15 bytes.
 *
 * Callers do the probing, which keeps the comparison of keys inline:
 * {{{
 *   val slots = index.part(hash)
 *   var i = HashIndex.home(hash, slots)
 *   while (slots(i) != 0L) {
 *     if ((slots(i) >>> 32).toInt == hash && isIt(slots(i).toInt)) ...
 *     i = HashIndex.after(i, slots)
 *   }
 * }}}
 *
 * @param expected expected number of entries
 */
private[engine] final class HashIndex(expected: Long) {
  import HashIndex._

  private var bits = 0
  // The last element of a part holds depth (upper half) and count (lower half).
  private var directory: Array[Array[Long]] = _
  private var slotCount = 0L

  init(expected)

  private def init(expected: Long): Unit = {
    bits = bitsFor(expected)
    slotCount = 0
    val slots = roomFor(expected >>> bits)
    directory = new Array[Array[Long]](1 << bits)
    var i = 0
    while (i < directory.length) {
      directory(i) = newPart(slots, bits)
      i += 1
    }
  }

  /** Bytes of memory. */
  def bytes: Long = slotCount * 8 + directory.length * 4L

  /** Part with the entries of a hash. */
  def part(hash: Int): Array[Long] = directory(partOf(hash, bits))

  /** Adds an entry; other entries may have its hash. */
  def insert(hash: Int, value: Int): Unit = {
    var slots = part(hash)
    while (count(slots) + 1 > full(slots.length - 1)) {
      grow(hash, slots)
      slots = part(hash)
    }
    place(slots, (hash.toLong << 32) | (value & 0xFFFFFFFFL))
    slots(slots.length - 1) += 1
  }

  /** Adds all entries to others. */
  def copyTo(entries: PendingEntries): Unit = foreachPart(copy(_, entries))

  private def copy(slots: Array[Long], entries: PendingEntries): Unit = {
    var i = 0
    while (i < slots.length - 1) {
      if (slots(i) != 0L) entries.add((slots(i) >>> 32).toInt, slots(i).toInt)
      i += 1
    }
  }

  /** Moves all entries to others, and keeps the room for as many. */
  def moveTo(entries: PendingEntries): Unit = foreachPart { slots =>
    copy(slots, entries)
    val d = depth(slots)
    Arrays.fill(slots, 0L)
    slots(slots.length - 1) = d.toLong << 32
  }

  private def foreachPart(use: Array[Long] => Unit): Unit = {
    var i = 0
    while (i < directory.length) {
      use(directory(i))
      i += 1 << (bits - depth(directory(i)))
    }
  }

  /**
   * Replaces everything with these entries. Each part is filled right after it was made, while it is in the processor's
   * cache.
   */
  def fill(entries: PendingEntries): Unit = {
    val divided = entries.dividedBy(bitsFor(entries.count))
    bits = divided.bits
    slotCount = 0
    directory = new Array[Array[Long]](1 << bits)
    val tooMany = new PendingEntries(0)
    var i = 0
    while (i < directory.length) {
      val n = divided.count(i)
      val slots = newPart(roomFor(n), bits)
      directory(i) = slots
      if (n <= full(slots.length - 1)) {
        placeAll(slots, divided.take(i), n)
      } else {
        divided.addTo(i, tooMany)
      }
      i += 1
    }
    // Of parts that must grow beyond their largest size, or split.
    tooMany.foreach(insert)
  }

  private def placeAll(slots: Array[Long], entries: Array[Long], n: Int): Unit = {
    var i = 0
    while (i < n) {
      place(slots, entries(i))
      i += 1
    }
    slots(slots.length - 1) += n
  }

  /** Replaces the value of an existing entry. */
  def replace(hash: Int, old: Int, value: Int): Unit = {
    val slots = part(hash)
    slots(find(slots, hash, old)) = (hash.toLong << 32) | (value & 0xFFFFFFFFL)
  }

  /** Removes an existing entry. */
  def delete(hash: Int, value: Int): Unit = {
    val slots = part(hash)
    val capacity = slots.length - 1
    var hole = find(slots, hash, value)
    // Later entries of the run move up, so removed entries need no markers.
    var i = after(hole, slots)
    while (slots(i) != 0L) {
      val start = home((slots(i) >>> 32).toInt, slots)
      if (distance(start, i, capacity) >= distance(hole, i, capacity)) {
        slots(hole) = slots(i)
        hole = i
      }
      i = after(i, slots)
    }
    slots(hole) = 0L
    slots(capacity) -= 1
    if (capacity > MinSlots && count(slots) < capacity / 8) {
      replacePart(hash, rehash(slots, capacity / 2, depth(slots)))
    }
  }

  private def find(slots: Array[Long], hash: Int, value: Int): Int = {
    val wanted = (hash.toLong << 32) | (value & 0xFFFFFFFFL)
    var i = home(hash, slots)
    while (slots(i) != wanted) {
      if (slots(i) == 0L) throw new IllegalStateException("The index lacks an entry that it must have.")
      i = after(i, slots)
    }
    i
  }

  private def grow(hash: Int, slots: Array[Long]): Unit = {
    val capacity = slots.length - 1
    val d = depth(slots)
    if (capacity < MaxSlots || d == MaxDepth) {
      replacePart(hash, rehash(slots, larger(capacity), d))
    } else {
      if (d == bits) doubleDirectory()
      split(hash, slots, d)
    }
  }

  private def doubleDirectory(): Unit = {
    val doubled = new Array[Array[Long]](directory.length * 2)
    var i = 0
    while (i < doubled.length) {
      doubled(i) = directory(i >>> 1)
      i += 1
    }
    directory = doubled
    bits += 1
  }

  private def split(hash: Int, slots: Array[Long], d: Int): Unit = {
    val capacity = slots.length - 1
    var ones = 0
    var i = 0
    while (i < capacity) {
      if (slots(i) != 0L) ones += ((slots(i) >>> (63 - d)) & 1).toInt
      i += 1
    }
    val zero = newPart(roomFor(count(slots) - ones), d + 1)
    val one = newPart(roomFor(ones), d + 1)
    i = 0
    while (i < capacity) {
      val slot = slots(i)
      if (slot != 0L) place(if (((slot >>> (63 - d)) & 1) == 0) zero else one, slot)
      i += 1
    }
    zero(zero.length - 1) += count(slots) - ones
    one(one.length - 1) += ones
    slotCount -= slots.length
    val span = 1 << (bits - d)
    val first = partOf(hash, bits) & ~(span - 1)
    i = 0
    while (i < span) {
      directory(first + i) = if (i < span / 2) zero else one
      i += 1
    }
  }

  private def replacePart(hash: Int, part: Array[Long]): Unit = {
    val span = 1 << (bits - depth(part))
    val first = partOf(hash, bits) & ~(span - 1)
    var i = 0
    while (i < span) {
      directory(first + i) = part
      i += 1
    }
  }

  private def rehash(slots: Array[Long], capacity: Int, d: Int): Array[Long] = {
    val part = newPart(capacity, d)
    var i = 0
    while (i < slots.length - 1) {
      if (slots(i) != 0L) place(part, slots(i))
      i += 1
    }
    part(capacity) = slots(slots.length - 1)
    slotCount -= slots.length
    part
  }

  private def newPart(capacity: Int, d: Int): Array[Long] = {
    val part = new Array[Long](capacity + 1)
    part(capacity) = d.toLong << 32
    slotCount += part.length
    part
  }

  private def place(slots: Array[Long], slot: Long): Unit = {
    var i = home((slot >>> 32).toInt, slots)
    while (slots(i) != 0L) i = after(i, slots)
    slots(i) = slot
  }

  private def count(slots: Array[Long]): Int = slots(slots.length - 1).toInt

  private def depth(slots: Array[Long]): Int = (slots(slots.length - 1) >>> 32).toInt
}

private[engine] object HashIndex {
  final val MinSlots = 8
  final val MaxSlots = 16384

  /** Beyond this many bits parts grow instead of splitting, for keys with equal hashes. */
  final val MaxDepth = 14

  // Bits of a hash that no split uses.
  private final val LowBits = 32 - MaxDepth

  /** First slot to look for a hash, in ascending order of its lower bits: copies from part to part are sequential. */
  def home(hash: Int, slots: Array[Long]): Int =
    (((hash & ((1 << LowBits) - 1)).toLong * (slots.length - 1)) >>> LowBits).toInt

  /** The slot after one. */
  def after(i: Int, slots: Array[Long]): Int = if (i + 2 == slots.length) 0 else i + 1

  /** Steps from one slot to another. */
  private def distance(from: Int, to: Int, capacity: Int): Int = if (to >= from) to - from else to - from + capacity

  /** Upper bits of a hash that tell its part, for this many entries. */
  def bitsFor(entries: Long): Int = {
    var bits = 0
    while (bits < MaxDepth && (entries >>> bits) > roomy(MaxSlots)) bits += 1
    bits
  }

  /** Part of a hash by its upper bits. */
  def partOf(hash: Int, bits: Int): Int = (hash >>> 1) >>> (31 - bits)

  /** Most entries of a part. */
  private def full(capacity: Int): Int = capacity / 4 * 3

  /** Entries of a part with some room for more. */
  private def roomy(capacity: Int): Long = capacity.toLong * 11 / 16

  /** Next size of a part. */
  private def larger(capacity: Int): Int =
    if (capacity < MaxSlots / 2 || capacity >= MaxSlots) capacity * 2
    else if (capacity < MaxSlots / 8 * 5) MaxSlots / 8 * 5
    else if (capacity < MaxSlots / 16 * 13) MaxSlots / 16 * 13
    else MaxSlots

  /** Size of a part for this many entries. */
  private def roomFor(entries: Long): Int = {
    var capacity = MinSlots
    while (capacity < MaxSlots && roomy(capacity) < entries) capacity = larger(capacity)
    capacity
  }
}
