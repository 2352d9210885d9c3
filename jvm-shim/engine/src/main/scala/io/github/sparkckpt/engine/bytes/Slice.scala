// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.bytes

/** Place of some bytes, as in `Platform`. One object may stand for many places, one after the other. */
final class Slice {
  private var ofBase: AnyRef = _
  private var ofOffset = 0L
  private var ofLength = 0

  /** Array with the bytes, or null (off-heap). */
  def base: AnyRef = ofBase

  /** Start of the bytes. */
  def offset: Long = ofOffset

  /** Number of bytes. */
  def length: Int = ofLength

  def point(base: AnyRef, offset: Long, length: Int): Slice = {
    ofBase = base
    ofOffset = offset
    ofLength = length
    this
  }
}
