// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

/**
 * Places of the rows of a block with one section of single values, as positions in its body before compression. Rows of
 * the same lengths take no memory; others take eight bytes each.
 *
 * @param body      the body
 * @param family    column family
 * @param rows      number of rows
 * @param keysAt    start of the first key
 * @param valuesAt  start of the first value
 * @param keyEnds   ends of the keys after the start of the first one; null if all have `keyLength`
 * @param valueEnds likewise
 */
private[engine] final class RowPlaces private (
    val body: BlockBody,
    val family: String,
    val rows: Int,
    keysAt: Int,
    valuesAt: Int,
    keyLength: Int,
    valueLength: Int,
    keyEnds: Array[Int],
    valueEnds: Array[Int]) {

  /** Bytes of memory. */
  def memoryBytes: Long =
    RowPlaces.ObjectBytes + body.memoryBytes + (if (keyEnds == null) 0L else keyEnds.length * 4L) +
      (if (valueEnds == null) 0L else valueEnds.length * 4L)

  /** Position of a key; that of the number of rows is the end of the keys. */
  def keyAt(i: Int): Int = keysAt + (if (keyEnds == null) i * keyLength else before(keyEnds, i))

  /** Position of a value; that of the number of rows is the end of the values. */
  def valueAt(i: Int): Int = valuesAt + (if (valueEnds == null) i * valueLength else before(valueEnds, i))

  private def before(ends: Array[Int], i: Int): Int = if (i == 0) 0 else ends(i - 1)
}

private[engine] object RowPlaces {
  private final val ObjectBytes = 128L

  /**
   * Places of the rows of a section.
   *
   * @param section the section, in an array that has the body from `start` on
   * @param end     end of the section in the array
   * @param fail    reports a section whose lengths are wrong
   */
  def of(
      body: BlockBody,
      family: String,
      section: SectionLayout,
      start: Int,
      end: Int,
      fail: String => Nothing): RowPlaces = {
    val n = section.rows
    val keyEnds = if (section.sameKeys) null else endsOf(n, section.keyLength, fail)
    val valueEnds = if (section.sameValues) null else endsOf(n, section.valueLength, fail)
    val keyLength = if (section.sameKeys) section.keyLength(0) else 0
    val valueLength = if (section.sameValues) section.valueLength(0) else 0
    if (keyLength < 0 || valueLength < 0) fail(s"keys of $keyLength bytes, values of $valueLength")
    def total(ends: Array[Int], length: Int): Long =
      if (ends == null) n.toLong * length else if (n == 0) 0L else ends(n - 1).toLong
    val keyBytes = total(keyEnds, keyLength)
    if (section.keysAt + keyBytes + total(valueEnds, valueLength) != end) fail("a section is not as long as its block")
    val keysAt = section.keysAt - start
    new RowPlaces(body, family, n, keysAt, keysAt + keyBytes.toInt, keyLength, valueLength, keyEnds, valueEnds)
  }

  private def endsOf(n: Int, length: Int => Int, fail: String => Nothing): Array[Int] = {
    val ends = new Array[Int](n)
    var sum = 0L
    var i = 0
    while (i < n) {
      if (length(i) < 0) fail(s"a key or value has length ${length(i)}")
      sum += length(i)
      if (sum > SegmentFormat.maxBlockBytes) fail("a section is longer than a block")
      ends(i) = sum.toInt
      i += 1
    }
    ends
  }
}
