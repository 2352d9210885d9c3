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

/**
 * A cursor over keys and values that points into the pages and copies nothing.
 *
 * It gives what was there when it was made, as an iterator of RocksDB does. Puts, appends and removes, also
 * of the current key, may happen between two calls of `advance` and change nothing of that.
 *
 * The bytes that the cursor points at stay unchanged until the next `advance` of this iterator, whatever is put or
 * removed meanwhile. After the batch has ended by `discard`, `fold` or another `openForWrite`, `advance`
 * throws `IllegalStateException`.
 */
abstract class EntryIterator {

  /** Goes to the next entry; false at the end, again and again. */
  def advance(): Boolean

  /**
   * Ends the iteration, as its last entry does: until then the batch keeps what this iterator is to give of
   * the values that it replaces. Does nothing the second time.
   */
  def close(): Unit

  def keyBase: AnyRef
  def keyOffset: Long

  /** Length of the key in bytes. */
  def keyLength: Int

  def valueBase: AnyRef
  def valueOffset: Long

  /** Length of the value in bytes. The value of a multi-value family is read with [[ListCursor]]. */
  def valueLength: Int
}
