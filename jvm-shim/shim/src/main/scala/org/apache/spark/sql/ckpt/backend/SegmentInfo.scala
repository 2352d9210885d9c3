package org.apache.spark.sql.ckpt.backend

import java.io.Closeable

/**
 * What was written as a segment.
 *
 * @param keyGroups key groups that have a block, ascending
 * @param offsets where each block begins, in bytes from the start of the segment
 * @param entries number of entries, removed keys included
 * @param bytes length of the segment
 */
final case class SegmentInfo(keyGroups: Array[Int], offsets: Array[Long], entries: Long, bytes: Long)

/** A segment in memory. `bytes` holds exactly the segment. */
final case class SegmentBytes(info: SegmentInfo, bytes: Array[Byte])

/** Bytes that blocks are read from: a file, or the bytes that came with a reply. Used by one thread at a time. */
trait ByteSource extends Closeable {

  /** Name for error messages, a path where there is one. */
  def name: String

  /** Number of bytes that can be read, counted from position 0. */
  def length: Long

  /** Fills `buffer(from)` until `from + count` with the bytes from `position`, or throws `IOException`. */
  def readFully(position: Long, buffer: Array[Byte], from: Int, count: Int): Unit
}

/** Bytes in memory, `from` until `from + count` of an array. Positions are relative to `from`. */
final class ArrayByteSource(val name: String, array: Array[Byte], from: Int, count: Int) extends ByteSource {

  def this(name: String, array: Array[Byte]) = this(name, array, 0, array.length)

  override def length: Long = count

  override def readFully(position: Long, buffer: Array[Byte], bufferFrom: Int, n: Int): Unit = {
    if (position < 0 || position + n > count) {
      throw new java.io.EOFException(s"$name ends at $count, wanted ${position + n}")
    }
    System.arraycopy(array, from + position.toInt, buffer, bufferFrom, n)
  }

  override def close(): Unit = ()
}

/**
 * A segment to restore from.
 *
 * @param isBase base or delta
 * @param source where its bytes are
 * @param offsets start of each block to load, ascending, as positions in the source
 */
final case class StateSegment(isBase: Boolean, source: ByteSource, offsets: Array[Long])

/** Which entries a restore takes. */
trait RestoreFilter {

  /** Whether a block of this key group is expected here. If not, the stream is taken as corrupt. */
  def acceptsKeyGroup(keyGroup: Int): Boolean

  /**
   * Whether a key belongs to this subtask. Only asked where [[filtersKeys]] is true, that is when a subtask owns
   * parts of key groups.
   */
  def acceptsKey(family: String, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean = true

  def filtersKeys: Boolean = false
}

object RestoreFilter {

  /** Key groups from `first` to `last`, both included. */
  def range(first: Int, last: Int): RestoreFilter = (keyGroup: Int) => keyGroup >= first && keyGroup <= last
}

/** A state stream that cannot be what was written. */
final class StateStreamCorruptException(val file: String, val offset: Long, val what: String, cause: Throwable)
  extends java.io.IOException(s"The state stream in $file is corrupt at byte $offset: $what", cause) {

  def this(file: String, offset: Long, what: String) = this(file, offset, what, null)
}
