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
}

/** How the keys of a column family can be reached besides by the whole key. */
sealed abstract class KeyAccess {

  /**
   * Two accesses of the same kind with the same id are taken to map keys in the same way, so that declaring a
   * family again keeps its index. For example the key schema and the number of prefix columns as text.
   */
  def id: String
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

/**
 * What a column family is.
 *
 * @param name name of the column family
 * @param keyGroups key group of a new key
 * @param access how keys are reached
 * @param multiValue whether a value is a list of rows
 */
final case class FamilySpec(
    name: String,
    keyGroups: KeyGroupFunction,
    access: KeyAccess = KeyAccess.Point,
    multiValue: Boolean = false)

/** In place of the key group function of a family that was restored but not declared yet. */
private[backend] final class UndeclaredKeyGroups(family: String) extends KeyGroupFunction {
  override def keyGroup(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Int =
    throw new IllegalStateException(s"Column family $family was restored but not declared yet.")
}
