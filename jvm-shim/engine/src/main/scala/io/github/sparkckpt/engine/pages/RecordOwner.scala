// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

/**
 * Owner of the records in pages. It finds them by their addresses, so it moves them.
 *
 * A class, not a trait: with one implementation loaded, the JVM calls it directly.
 */
private[engine] abstract class RecordOwner {

  /** Words of each record for its links to others. */
  def linkWords: Int

  /** True if records may leave memory: no index leads from one to the next. */
  def mayEvict: Boolean

  /** Bytes of memory, with those of the pages. */
  def memoryBytes: Long

  /** Moves a live record of so many words to another place, so that its page can be freed. */
  def relocate(address: Int, from: Array[Byte], fromOffset: Long, moved: Int, words: Int): Unit

  /** Forgets records that were read from evicted pages. */
  def forgetRead(): Unit
}
