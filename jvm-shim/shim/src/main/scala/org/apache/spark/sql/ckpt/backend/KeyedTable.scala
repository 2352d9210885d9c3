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
 * A column family in the open batch: reads what the batch has done so far, and writes to it.
 *
 * Not thread-safe: used by the task that has the batch open. Keys and values are copied; they may point
 * anywhere, also at what this table returned. Key lengths are multiples of 8, as those of `UnsafeRow`s
 * are.
 *
 * Every method that writes throws `IllegalStateException` if no batch is open, and [[TableRetiredException]] if another
 * batch has taken the place of the table's.
 */
trait KeyedTable extends TableReader {

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

  /**
   * Begins a list in scratch space, for [[addToList]] and then [[putList]] or [[appendList]].
   *
   * @throws UnsupportedOperationException if the family has one value per key
   */
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
