// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

import java.io.{EOFException, IOException}
import java.nio.{ByteBuffer, ByteOrder}
import java.nio.channels.{ClosedChannelException, FileChannel}
import java.nio.file.{Files, OpenOption, Path}
import java.nio.file.StandardOpenOption.{CREATE_NEW, READ, WRITE}
import java.util.zip.CRC32C

import scala.collection.mutable
import scala.util.control.NonFatal

/**
 * A local file with evicted pages. It is temporary: it goes with its table, or at the latest with this object.
 *
 * A page takes a run of 4 KiB blocks. It is written once; memory has a checksum of each block, and every read checks
 * the blocks that it touches. So no change of the file, however it happens, passes for state. The run of a released
 * page is used again for a page of as many blocks.
 *
 * Reads go by position, from any thread. A thread that is interrupted during I/O closes a `FileChannel` for all: then
 * the file is opened again, and the interruption stays for others to see. The first other failure is final.
 */
private[engine] final class LocalFile(path: Path, traffic: LocalTraffic) {
  import LocalFile._

  private val handle = new Handle(path)
  private val cleanable = Cleanups.whenUnreachable(this)(handle)

  private val freeRuns = mutable.HashMap.empty[Int, IntStack]
  private var end = 0
  private var liveBlocks = 0L
  // The table, and each snapshot.
  private var users = 1
  @volatile private var failure: LocalStateException = _

  /** True if reading or writing has failed: pages may be lost. */
  def isBroken: Boolean = failure != null

  /** Bytes of the pages. */
  def bytes: Long = synchronized(liveBlocks * BlockBytes)

  /** Bytes of the file. */
  def size: Long = synchronized(end.toLong * BlockBytes)

  /** Writes a page. */
  def write(bytes: Array[Byte], length: Int): LocalPage = {
    val blocks = runOf(length)
    val page = new LocalPage(this, allocate(blocks), blocks, length, sumsOf(bytes, length))
    val buffer = Scratch.get().buffer
    guarded(s"a page of $length bytes cannot be written") {
      var done = 0
      while (done < length) {
        val count = math.min(length - done, buffer.capacity)
        buffer.clear()
        buffer.put(bytes, done, count).flip()
        val from = page.position + done
        handle.use { channel =>
          buffer.rewind()
          while (buffer.hasRemaining) channel.write(buffer, from + buffer.position)
        }
        done += count
      }
    }
    traffic.writtenBytes.add(length)
    page
  }

  /**
   * Reads bytes of a page, which begin at a block, and checks them.
   *
   * @param until end of the bytes: of a block, or of the page
   * @throws IllegalStateException if the page was given up meanwhile, as a reader of an abandoned batch may find. Its
   *                               blocks may have other bytes by then, which is no failure of the file
   */
  def read(page: LocalPage, from: Int, until: Int, to: Array[Byte], at: Int): Unit = {
    if (failure != null) throw new LocalStateException(path.toString, failure.what, failure)
    val buffer = Scratch.get().buffer
    guarded(s"${until - from} bytes at ${page.position + from} cannot be read", page.isFree) {
      var done = from
      while (done < until) {
        val count = math.min(until - done, buffer.capacity)
        val start = page.position + done
        handle.use { channel =>
          buffer.clear().limit(count)
          while (buffer.hasRemaining) {
            if (channel.read(buffer, start + buffer.position) < 0) {
              throw new EOFException(s"the file ends before ${start + count}")
            }
          }
        }
        traffic.reads.increment()
        buffer.flip()
        buffer.get(to, at + done - from, count)
        done += count
      }
      page.check(from, until, to, at)
    }
    traffic.readBytes.add(until - from)
  }

  /** Another user of the file. */
  def retain(): Unit = synchronized(users += 1)

  /** Ends one use; the file is deleted with the last. From any thread. */
  def release(): Unit = {
    val last = synchronized {
      users -= 1
      users == 0
    }
    if (last) cleanable.clean()
  }

  private[engine] def free(page: LocalPage): Unit = synchronized {
    liveBlocks -= page.blocks
    freeRuns.getOrElseUpdate(page.blocks, new IntStack).push(page.firstBlock)
  }

  private def allocate(blocks: Int): Int = synchronized {
    liveBlocks += blocks
    val free = freeRuns.getOrElse(blocks, null)
    if (free != null && free.nonEmpty) {
      free.pop()
    } else {
      end = Math.addExact(end, blocks)
      end - blocks
    }
  }

  private def guarded(what: => String, isStale: => Boolean = false)(body: => Unit): Unit =
    try body catch {
      case NonFatal(e) if isStale => throw new IllegalStateException(s"$what: the table has given them up", e)
      case NonFatal(e) =>
        val lost = new LocalStateException(path.toString, s"$what: $e", e)
        failure = lost
        throw lost
    }
}

private[engine] object LocalFile {
  final val BlockShift = 12
  final val BlockBytes = 1 << BlockShift

  /** Bytes of one I/O. */
  private final val ChunkBytes = 1 << 16

  /** Opens a file. Tests replace it, to fail. */
  @volatile private[engine] var open: (Path, Seq[OpenOption]) => FileChannel =
    (path, options) => FileChannel.open(path, options: _*)

  /** Reusable memory of a thread. */
  private[engine] final class Scratch {
    val buffer: ByteBuffer = ByteBuffer.allocateDirect(ChunkBytes).order(ByteOrder.nativeOrder())
    var bytes = new Array[Byte](4 * BlockBytes)
  }

  private[engine] val Scratch: ThreadLocal[Scratch] = ThreadLocal.withInitial(() => new Scratch)

  /**
   * Blocks for a page. Large runs are rounded up by at most an eighth, so that runs of few lengths are used again and
   * again.
   */
  private def runOf(length: Int): Int = {
    val blocks = ((length.toLong + BlockBytes - 1) >>> BlockShift).toInt
    val step = math.max(1, Integer.highestOneBit(blocks) >>> 3)
    (blocks + step - 1) / step * step
  }

  private def sumsOf(bytes: Array[Byte], length: Int): Array[Int] = {
    val sums = new Array[Int](((length.toLong + BlockBytes - 1) >>> BlockShift).toInt)
    val crc = new CRC32C
    var i = 0
    while (i < sums.length) {
      sums(i) = sumOf(crc, bytes, i << BlockShift, math.min(BlockBytes, length - (i << BlockShift)))
      i += 1
    }
    sums
  }

  private[engine] def sumOf(crc: CRC32C, bytes: Array[Byte], from: Int, count: Int): Int = {
    crc.reset()
    crc.update(bytes, from, count)
    crc.getValue.toInt
  }

  /** The open file, apart from the object that its owner holds. */
  private final class Handle(path: Path) extends Runnable {
    private var channel = LocalFile.opened(path, CREATE_NEW)
    private var ended = false

    /** Runs an action on the channel, and again after an interruption: it must be repeatable. */
    def use(action: FileChannel => Unit): Unit = {
      var interrupted = false
      var done = false
      try {
        while (!done) {
          try {
            action(current())
            done = true
          } catch {
            // Also if another thread was interrupted.
            case e: ClosedChannelException =>
              interrupted |= Thread.interrupted()
              if (isEnded) throw new IOException("the table of the file is closed", e)
          }
        }
      } finally if (interrupted) Thread.currentThread().interrupt()
    }

    private def isEnded: Boolean = synchronized(ended)

    private def current(): FileChannel = synchronized {
      if (!channel.isOpen && !ended) channel = LocalFile.opened(path)
      channel
    }

    /** Deletes the file. */
    override def run(): Unit = synchronized {
      ended = true
      // Its bytes are of no use any more.
      try channel.close() catch { case _: IOException => }
      try Files.deleteIfExists(path) catch { case _: IOException => }
    }
  }

  private def opened(path: Path, more: OpenOption*): FileChannel =
    try open(path, Seq[OpenOption](READ, WRITE) ++ more) catch {
      case e: IOException if more.nonEmpty =>
        throw new LocalStateException(path.toString, s"the file cannot be created: $e", e)
    }
}
