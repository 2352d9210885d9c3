// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.table

import io.github.sparkckpt.engine.bytes.Slice

/** Key group of a key. Called only for new keys: the record of an existing key has its key group. */
trait KeyGroupFunction {

  /**
   * @param keyBase array with the key, or null (off-heap)
   * @param keyOffset start of the key, as in `Platform`
   * @param keyLength bytes, a multiple of 8
   * @return a number from 0 until the number of key groups of the backend
   */
  def keyGroup(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Int

  /** An equal function with its own scratch space, if it has any: the thread of this one may still run. */
  def another: KeyGroupFunction = this
}

/** Access to the keys of a column family, apart from the whole key. */
sealed abstract class KeyAccess {

  /**
   * Two accesses of the same kind and id must map keys in the same way, so a repeated declaration of a family keeps its
   * index. Example: the key schema and the number of prefix columns as text.
   */
  def id: String

  /** An equal access with its own scratch space, if it has any: the thread of this one may still run. */
  def another: KeyAccess = this
}

object KeyAccess {

  /** By the whole key only; iteration is unordered. */
  case object Point extends KeyAccess {
    override val id: String = "point"
  }

  /** By prefix, too; iteration is unordered. */
  abstract class Prefix extends KeyAccess {

    /**
     * The prefix of a key. The slice and its bytes may be reused by the next call. Equal prefixes have equal bytes, a
     * multiple of 8.
     */
    def prefixOf(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Slice
  }

  /** By order, too (range scan, prefix scan). */
  abstract class Ordered extends KeyAccess {

    /**
     * A new array with the encoded key. Encodings compare as unsigned bytes in the order of keys; different keys have
     * different encodings.
     */
    def encode(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Array[Byte]
  }
}

/** Placeholder for the key group function of a family that was restored but not declared yet. */
private[engine] final class UndeclaredKeyGroups(family: String) extends KeyGroupFunction {
  override def keyGroup(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Int =
    throw new IllegalStateException(s"Column family $family was restored but not declared yet.")
}
