// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

import scala.collection.mutable

import io.github.sparkckpt.engine.bytes.{Bytes, ListCursor}

import org.apache.spark.unsafe.Platform

/**
 * Entry of a delta: a put or a removal of one key.
 *
 * @param value the new value; of a list the new list, or, if `appended`, a list of the rows that were added to
 *              the one before (see [[ListCursor]]); null if the key was removed
 */
final case class DeltaEntry(key: Array[Byte], value: Array[Byte], appended: Boolean)

object DeltaEntries {

  /**
   * Entries of a column family in a delta, in the order of the file.
   *
   * @param version the version that the delta leads to
   * @throws StateStreamDamagedException if a block was changed after it was written
   */
  def read(delta: StateSegment, version: Long, family: String): Seq[DeltaEntry] = {
    val wanted = new Collector
    val sink: SegmentSink = (name: String, _: Boolean) => if (name == family) wanted else Ignored
    new SegmentReader(sink, _ => true).load(delta, version)
    wanted.entries.toSeq
  }

  private final class Collector extends SegmentTarget {
    val entries = mutable.ArrayBuffer.empty[DeltaEntry]

    override def put(
        keyGroup: Int,
        keyBase: AnyRef,
        keyOffset: Long,
        keyLength: Int,
        valueBase: AnyRef,
        valueOffset: Long,
        valueLength: Int): Unit = entries += DeltaEntry(
      Bytes.toArray(keyBase, keyOffset, keyLength),
      Bytes.toArray(valueBase, valueOffset, valueLength),
      appended = false)

    override def append(
        keyBase: AnyRef,
        keyOffset: Long,
        keyLength: Int,
        rows: Int,
        rowsBase: AnyRef,
        rowsOffset: Long,
        rowsLength: Int): Boolean = {
      val list = new Array[Byte](4 + rowsLength)
      ListCursor.putInt(list, Platform.BYTE_ARRAY_OFFSET, rows)
      Platform.copyMemory(rowsBase, rowsOffset, list, Platform.BYTE_ARRAY_OFFSET + 4, rowsLength)
      entries += DeltaEntry(Bytes.toArray(keyBase, keyOffset, keyLength), list, appended = true)
      true
    }

    override def remove(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit =
      entries += DeltaEntry(Bytes.toArray(keyBase, keyOffset, keyLength), null, appended = false)
  }

  private object Ignored extends SegmentTarget {
    override def put(
        keyGroup: Int,
        keyBase: AnyRef,
        keyOffset: Long,
        keyLength: Int,
        valueBase: AnyRef,
        valueOffset: Long,
        valueLength: Int): Unit = ()

    override def append(
        keyBase: AnyRef,
        keyOffset: Long,
        keyLength: Int,
        rows: Int,
        rowsBase: AnyRef,
        rowsOffset: Long,
        rowsLength: Int): Boolean = true

    override def remove(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit = ()
  }
}
