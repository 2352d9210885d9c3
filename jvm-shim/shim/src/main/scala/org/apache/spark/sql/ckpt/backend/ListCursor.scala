/*
 * Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
 * the License. You may obtain a copy of the License at
 *
 *    http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on
 * an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
 * specific language governing permissions and limitations under the License.
 */
package org.apache.spark.sql.ckpt.backend

import java.nio.ByteOrder

import org.apache.spark.unsafe.Platform

/**
 * Walks the rows of the value of a multi-value family, which is `i32 m`, then m times (`i32` length, row
 * bytes), big-endian. Points into the value and copies nothing. Rows are not aligned to 8 bytes.
 *
 * It is bounded by the length that the value had when the cursor was made, so a row appended to the same list
 * later is not seen and disturbs nothing.
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

  /** True if [[advance]] will give a row. */
  def hasNext: Boolean = position < end

  /** Goes to the next row; false at the end. */
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
  private[backend] val littleEndian = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN

  private[backend] def getInt(base: AnyRef, offset: Long): Int = {
    val x = Platform.getInt(base, offset)
    if (littleEndian) Integer.reverseBytes(x) else x
  }

  private[backend] def putInt(base: AnyRef, offset: Long, value: Int): Unit = {
    Platform.putInt(base, offset, if (littleEndian) Integer.reverseBytes(value) else value)
  }
}
