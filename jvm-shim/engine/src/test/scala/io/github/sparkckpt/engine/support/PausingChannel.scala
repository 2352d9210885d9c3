// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.support

import java.nio.{ByteBuffer, MappedByteBuffer}
import java.nio.channels.{FileChannel, FileLock, ReadableByteChannel, WritableByteChannel}

/** A file whose reads by position can be made to stand still, before they begin or after they have the bytes. */
final class PausingChannel(file: FileChannel, before: () => Unit, after: () => Unit) extends FileChannel {
  override def read(into: ByteBuffer, position: Long): Int = {
    before()
    val count = file.read(into, position)
    after()
    count
  }

  override def read(into: ByteBuffer): Int = file.read(into)
  override def read(into: Array[ByteBuffer], offset: Int, length: Int): Long = file.read(into, offset, length)
  override def write(from: ByteBuffer): Int = file.write(from)
  override def write(from: Array[ByteBuffer], offset: Int, length: Int): Long = file.write(from, offset, length)
  override def write(from: ByteBuffer, position: Long): Int = file.write(from, position)
  override def position(): Long = file.position()
  override def position(at: Long): FileChannel = file.position(at)
  override def size(): Long = file.size()
  override def truncate(size: Long): FileChannel = file.truncate(size)
  override def force(metadata: Boolean): Unit = file.force(metadata)
  override def transferTo(from: Long, count: Long, to: WritableByteChannel): Long = file.transferTo(from, count, to)
  override def transferFrom(from: ReadableByteChannel, at: Long, count: Long): Long = file.transferFrom(from, at, count)
  override def map(mode: FileChannel.MapMode, at: Long, size: Long): MappedByteBuffer = file.map(mode, at, size)
  override def lock(at: Long, size: Long, shared: Boolean): FileLock = file.lock(at, size, shared)
  override def tryLock(at: Long, size: Long, shared: Boolean): FileLock = file.tryLock(at, size, shared)
  override protected def implCloseChannel(): Unit = file.close()
}
