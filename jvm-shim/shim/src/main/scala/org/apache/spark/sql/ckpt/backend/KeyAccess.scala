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

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/**
 * Gives the key group of a key. Called only for keys that the store does not hold yet: the key group of an
 * existing key is read from its record.
 */
trait KeyGroupFunction {

  /**
   * @param keyBase array or null (off-heap) that holds the key
   * @param keyOffset where the key begins, in the terms of `Platform`
   * @param keyLength bytes, a multiple of 8
   * @return a number from 0 until the number of key groups of the backend
   */
  def keyGroup(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Int

  /** An equal function with scratch space of its own, if it has any: the thread that used this one may still run. */
  def another: KeyGroupFunction = this
}

/** Access to the keys of a column family other than by the whole key. */
sealed abstract class KeyAccess {

  /**
   * Two accesses of the same kind with the same id are taken to map keys in the same way, so that declaring a
   * family again keeps its index. For example the key schema and the number of prefix columns as text.
   */
  def id: String

  /** An equal access with scratch space of its own, if it has any: the thread that used this one may still run. */
  def another: KeyAccess = this
}

object KeyAccess {

  /** Only by the whole key, and all of them in no order. */
  case object Point extends KeyAccess {
    override val id: String = "point"
  }

  /** Also all keys that share a prefix (prefix scan), in no order. */
  abstract class Prefix extends KeyAccess {

    /**
     * The prefix of a key as a row. The row may be reused by the next call. Equal prefixes have equal bytes.
     */
    def prefixOf(keyBase: AnyRef, keyOffset: Long, keyLength: Int): UnsafeRow
  }

  /** Also all keys in an order (range scan, prefix scan). */
  abstract class Ordered extends KeyAccess {

    /**
     * A new array with the encoded key. Keys are ordered as their encodings are when compared as unsigned
     * bytes; different keys have different encodings.
     */
    def encode(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Array[Byte]
  }
}

/** In place of the key group function of a family that was restored but not declared yet. */
private[backend] final class UndeclaredKeyGroups(family: String) extends KeyGroupFunction {
  override def keyGroup(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Int =
    throw new IllegalStateException(s"Column family $family was restored but not declared yet.")
}
