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
 * Reader of one column family at one version.
 *
 * Not thread-safe. The result of `get` stays valid until the next `get` of the same reader, regardless of puts and
 * removes. After the end of the batch (`discard`, `fold`, `openForWrite`) a reader must not be used. Keys and values
 * are places in memory, as in `Platform`; the backend decides where it keeps records.
 */
trait TableReader {

  /** Name of the column family. */
  def name: String

  /** Number of keys. */
  def rowCount: Long

  def valueBase: AnyRef

  def valueOffset: Long

  /** Length of the value in bytes. The value of a multi-value family is read with [[ListCursor]]. */
  def valueLength: Int

  /** Looks a key up. If found, the `value` fields point at its value. */
  def get(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean

  /** True if a key exists. Leaves the `value` fields unchanged. */
  def contains(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean

  /** All entries, of a `KeyAccess.Ordered` family in order. */
  def iterator(): EntryIterator

  /**
   * The entries whose prefix has these bytes.
   *
   * In a `KeyAccess.Prefix` family the bytes are those of a prefix row; in a `KeyAccess.Ordered` family
   * the first bytes of the encoded key, and the entries come in order. The bytes are copied.
   *
   * @throws UnsupportedOperationException if the family's access is `Point`
   */
  def prefixScan(prefixBase: AnyRef, prefixOffset: Long, prefixLength: Int): EntryIterator

  /**
   * The entries of a `KeyAccess.Ordered` family from `start` (included) until `end` (excluded), in order.
   *
   * @param start encoded key, null for the first
   * @param end encoded key, null for no end
   * @throws UnsupportedOperationException if the family's access is another
   */
  def rangeScan(start: Array[Byte], end: Array[Byte]): EntryIterator
}
