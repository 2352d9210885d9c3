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
package io.github.sparkckpt.engine.backend

/**
 * A cursor over keys and values that points into the pages and copies nothing.
 *
 * It returns the entries present at its creation, as an iterator of RocksDB does. Puts, appends and removes between two
 * calls of `advance`, even of the current key, do not change that.
 *
 * The current bytes stay unchanged until the next `advance` of this iterator, regardless of puts and removes. After the
 * end of the batch by `discard`, `fold` or another `openForWrite`, `advance` throws `IllegalStateException`.
 */
abstract class EntryIterator {

  /** Moves to the next entry; false at the end, also when repeated. */
  def advance(): Boolean

  /**
   * Ends the iteration, as its last entry does: until then the batch keeps the replaced values that this iterator still
   * has to return. Idempotent.
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
