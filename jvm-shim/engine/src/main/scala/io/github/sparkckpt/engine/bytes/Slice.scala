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
