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
