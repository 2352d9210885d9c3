// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.bytes

import java.nio.ByteOrder

import org.apache.spark.unsafe.Platform

/**
 * Cursor over the rows of a multi-value family's value, which is `i32 m`, then m times (`i32` length, row bytes),
 * big-endian. It points into the value and copies nothing. Rows are not aligned to 8 bytes.
 *
 * The length of the value at the cursor's creation bounds it, so rows appended later are not visible.
 */
final class ListCursor {
  private var listBase: AnyRef = _
  private var position = 0L
  private var end = 0L

  /** Place of the current row. */
  def rowBase: AnyRef = listBase
  var rowOffset: Long = 0L

  /** Length of the current row in bytes. */
  var rowLength: Int = 0

  /** Points the cursor before the first row of a list. */
  def reset(base: AnyRef, offset: Long, length: Int): this.type = {
    listBase = base
    position = offset + 4
    end = offset + length
    this
  }

  /** True if [[advance]] will find a row. */
  def hasNext: Boolean = position < end

  /** Moves to the next row; false at the end. */
  def advance(): Boolean = {
    if (position >= end) {
      false
    } else {
      rowLength = ListCursor.getInt(listBase, position)
      rowOffset = position + 4
      position = rowOffset + rowLength
      true
    }
  }
}

object ListCursor {
  private[engine] val littleEndian = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN

  private[engine] def getInt(base: AnyRef, offset: Long): Int = {
    val x = Platform.getInt(base, offset)
    if (littleEndian) Integer.reverseBytes(x) else x
  }

  private[engine] def putInt(base: AnyRef, offset: Long, value: Int): Unit = {
    Platform.putInt(base, offset, if (littleEndian) Integer.reverseBytes(value) else value)
  }
}
