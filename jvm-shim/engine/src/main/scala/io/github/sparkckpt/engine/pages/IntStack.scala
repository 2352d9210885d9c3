// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

import java.util.Arrays

/** A stack of unboxed ints. */
private[engine] final class IntStack {
  private var items = new Array[Int](4)
  private var count = 0

  def size: Int = count

  def nonEmpty: Boolean = count > 0

  def push(x: Int): Unit = {
    if (count == items.length) items = Arrays.copyOf(items, count * 2)
    items(count) = x
    count += 1
  }

  def pop(): Int = {
    count -= 1
    items(count)
  }

  def top: Int = items(count - 1)

  def clear(): Unit = count = 0

  /** Removes one value, wherever it is. */
  def remove(x: Int): Unit = {
    var i = 0
    while (i < count && items(i) != x) i += 1
    if (i < count) {
      count -= 1
      items(i) = items(count)
    }
  }

  /** The largest value, 0 if there is none. */
  def maximum: Int = {
    var max = 0
    var i = 0
    while (i < count) {
      if (items(i) > max) max = items(i)
      i += 1
    }
    max
  }

  /** Removes the addresses on marked pages. */
  def removePages(marked: Array[Boolean]): Unit = {
    var kept = 0
    var i = 0
    while (i < count) {
      val number = items(i) >>> RecordPages.PageShift
      if (number >= marked.length || !marked(number)) {
        items(kept) = items(i)
        kept += 1
      }
      i += 1
    }
    count = kept
    if (items.length > 64 && count < items.length / 4) items = Arrays.copyOf(items, items.length / 2)
  }

  def bytes: Long = items.length * 4L
}
