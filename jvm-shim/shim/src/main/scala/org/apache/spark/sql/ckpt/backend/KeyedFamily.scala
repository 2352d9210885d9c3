package org.apache.spark.sql.ckpt.backend

/**
 * A column family of the open batch: reads what the batch has done so far, and writes to it.
 *
 * Not thread-safe: used by the task that has the batch open. Keys and values are copied; they may point anywhere,
 * also at what this family returned.
 */
abstract class KeyedFamily extends FamilyReader {

  /** Puts a value. In a multi-value family the value is an encoded list, see [[ListCursor]]. */
  def put(
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      valueBase: AnyRef,
      valueOffset: Long,
      valueLength: Int): Unit

  /** Removes a key; true if it was there. */
  def remove(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean

  /** Appends one row to the list of a key in a multi-value family; makes the list if the key is new. */
  def append(
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      rowBase: AnyRef,
      rowOffset: Long,
      rowLength: Int): Unit

  /** Begins a list in the family's scratch space, for [[addToList]] and then [[putList]] or [[appendList]]. */
  def startList(): Unit

  /** Adds a row to the list that was begun. */
  def addToList(rowBase: AnyRef, rowOffset: Long, rowLength: Int): Unit

  /** Puts the list that was begun as the value of a key. */
  def putList(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit

  /** Appends the list that was begun to that of a key. */
  def appendList(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit

  /** Removes the entries of a range scan; returns how many there were. */
  def removeRange(start: Array[Byte], end: Array[Byte]): Long
}
