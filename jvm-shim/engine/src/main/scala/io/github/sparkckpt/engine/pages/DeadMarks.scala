// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

import java.util.Arrays

/**
 * Marks of records that died on pages in memory, a bit for each word, by page number: a page that a snapshot shares
 * stays as it is. Changed with the table only; snapshots get copies.
 */
private[engine] final class DeadMarks {
  import DeadMarks._

  private var bits = NoBits
  private val marked = new IntStack

  /** Number of pages with marks. */
  def pages: Int = marked.size

  /** Bytes of memory. */
  def bytes: Long = bits.length * 4L + marked.size * Words * 8L

  /** Marks by page number, null for a page without any; page numbers beyond the end have none. */
  def all: Array[Array[Long]] = bits

  /** A copy of all marks, for a snapshot. */
  def copied(): Array[Array[Long]] =
    if (marked.nonEmpty) bits.map(of => if (of == null) null else of.clone()) else NoBits

  /** Marks of a page, null if it has none. */
  def on(number: Int): Array[Long] = if (number < bits.length) bits(number) else null

  /** Marks the record of an address. */
  def add(address: Int): Unit = {
    val number = address >>> RecordPages.PageShift
    if (number >= bits.length) bits = Arrays.copyOf(bits, math.max(number + 1, bits.length * 2))
    if (bits(number) == null) {
      bits(number) = new Array[Long](Words)
      marked.push(number)
    }
    val word = address & RecordPages.WordMask
    bits(number)(word >>> 6) |= 1L << word
  }

  /** True if the record of an address is marked. */
  def has(address: Int): Boolean = {
    val of = on(address >>> RecordPages.PageShift)
    val word = address & RecordPages.WordMask
    of != null && (of(word >>> 6) & (1L << word)) != 0
  }

  /** Removes the marks of a page. */
  def remove(number: Int): Unit = if (on(number) != null) {
    bits(number) = null
    marked.remove(number)
  }

  /** Removes the marks of all pages with this property, and hands over the addresses of their records. */
  def take(ofPage: Int => Boolean)(use: Int => Unit): Unit = if (marked.nonEmpty) {
    val numbers = Array.fill(marked.size)(marked.pop())
    numbers.foreach { number =>
      if (ofPage(number)) {
        val of = bits(number)
        bits(number) = null
        each(of)(word => use((number << RecordPages.PageShift) | word))
      } else {
        marked.push(number)
      }
    }
  }

  private def each(of: Array[Long])(use: Int => Unit): Unit = {
    var i = 0
    while (i < of.length) {
      var rest = of(i)
      while (rest != 0) {
        use((i << 6) | java.lang.Long.numberOfTrailingZeros(rest))
        rest &= rest - 1
      }
      i += 1
    }
  }
}

private[engine] object DeadMarks {

  /** Longs with a bit for each word of a page. */
  final val Words = 1 << (RecordPages.PageShift - 6)

  private val NoBits = new Array[Array[Long]](0)
}
