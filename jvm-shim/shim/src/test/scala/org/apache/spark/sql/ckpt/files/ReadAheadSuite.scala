// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.files

import java.io.{EOFException, FileNotFoundException}
import java.net.URI
import java.nio.file.Files
import java.util.concurrent.{CountDownLatch, TimeUnit}
import java.util.concurrent.atomic.AtomicInteger

import scala.util.Random

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FSDataInputStream, Path, RawLocalFileSystem}
import org.apache.spark.util.Utils
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.protocol.LocatedFile

class ReadAheadSuite extends AnyFunSuite {
  private val directory = Utils.createTempDir(namePrefix = "read-ahead").toPath

  private val files = {
    val conf = new Configuration()
    conf.set("fs.meeting.impl", classOf[MeetingFileSystem].getName)
    conf.setBoolean("fs.meeting.impl.disable.cache", true)
    new StateFiles(new Path(URI.create("meeting://" + directory)), conf)
  }

  private def file(name: String, bytes: Array[Byte]): LocatedFile = {
    Files.write(directory.resolve(name), bytes)
    LocatedFile(name, bytes.length)
  }

  private def random(seed: Int, count: Int): Array[Byte] = {
    val bytes = new Array[Byte](count)
    new Random(seed).nextBytes(bytes)
    bytes
  }

  private val unshared = new SharedReads(maxFile = 0)

  test("the files of a load are opened at the same time, and no request asks for their length") {
    val contents = (0 until 5).map(random(_, 1000))
    val located = contents.zipWithIndex.map { case (bytes, i) => file(s"together-$i", bytes) }
    MeetingFileSystem.expect(located.size)
    val ahead = new ReadAhead(files)
    val sources = located.map(ahead.source(_, Array(0L)))
    ahead.start()
    sources.zip(contents).foreach { case (source, expected) =>
      val read = new Array[Byte](expected.length)
      source.readFully(0, read, 0, read.length)
      assert(read.sameElements(expected))
    }
    sources.foreach(_.close())
    assert(MeetingFileSystem.statuses.get() == 0)
  }

  test("every range has the bytes of the file, whatever the parts") {
    MeetingFileSystem.expect(0)
    val size = 300000
    val bytes = random(7, size)
    val located = file("ranges", bytes)
    for (seed <- 0 until 20; partBytes <- Seq(64, 4096, 1 << 20)) {
      val numbers = new Random(seed)
      val offsets = Array.fill(4)(numbers.nextInt(size).toLong).sorted
      val ahead = new ReadAhead(files, partBytes, 3L * partBytes, unshared)
      val source = ahead.source(located, offsets)
      ahead.start()
      var position = offsets.head
      while (position < size) {
        val count = math.min(numbers.nextInt(5 * partBytes) + 1, size - position).toInt
        val read = new Array[Byte](count + 2)
        source.readFully(position, read, 1, count)
        val expected = bytes.slice(position.toInt, position.toInt + count)
        assert(read.slice(1, count + 1).sameElements(expected), s"seed $seed")
        // As a reader that reads the end of one window again at the start of the next.
        position += math.max(1, count - numbers.nextInt(partBytes))
      }
      source.close()
    }
  }

  test("at most the given number of bytes is read ahead") {
    MeetingFileSystem.expect(0)
    val located = (0 until 8).map(i => file(s"bound-$i", random(i, 1000)))
    MeetingFileSystem.opened.set(0)
    val ahead = new ReadAhead(files, partBytes = 1000, aheadBytes = 3000, unshared)
    val sources = located.map(ahead.source(_, Array(0L)))
    ahead.start()
    val read = new Array[Byte](1000)
    sources.zipWithIndex.foreach { case (source, i) =>
      source.readFully(0, read, 0, 1000)
      assert(MeetingFileSystem.opened.get() <= i + 3)
      source.close()
    }
    assert(MeetingFileSystem.opened.get() == 8)
  }

  test("a file that is missing or shorter than its length fails as without reading ahead") {
    MeetingFileSystem.expect(0)
    val short = file("short", random(1, 100)).copy(bytes = 200)
    for {
      shared <- Seq(unshared, new SharedReads(maxFile = 1000))
      (located, expected) <-
        Seq(short -> classOf[EOFException], LocatedFile("none", 100) -> classOf[FileNotFoundException])
    } {
      val ahead = new ReadAhead(files, shared = shared)
      val source = ahead.source(located, Array(0L))
      ahead.start()
      val count = math.min(150, located.bytes.toInt)
      val caught = intercept[java.io.IOException](source.readFully(0, new Array[Byte](count), 0, count))
      assert(caught.getClass == expected)
      source.close()
      assert(shared.size == 0)
    }
  }

  test("stores that load parts of the same small file read it once") {
    MeetingFileSystem.expect(0)
    val bytes = random(3, 200000)
    val located = file("shared", bytes)
    val shared = new SharedReads(maxFile = 200000)
    MeetingFileSystem.opened.set(0)
    for (store <- 0 until 4) {
      val ahead = new ReadAhead(files, partBytes = 1000, shared = shared)
      val source = ahead.source(located, Array(store * 50000L, store * 50000L + 20000))
      ahead.start()
      val read = new Array[Byte](50000)
      source.readFully(store * 50000L, read, 0, 25000)
      source.readFully(store * 50000L + 25000, read, 25000, 25000)
      source.close()
      assert(read.sameElements(bytes.slice(store * 50000, (store + 1) * 50000)))
    }
    assert(MeetingFileSystem.opened.get() == 1)
    assert(shared.size == 200000)
  }
}

/** Local files of another scheme, each of which is open only when the expected number of files is. */
class MeetingFileSystem extends RawLocalFileSystem {
  private val isOpening = ThreadLocal.withInitial[Boolean](() => false)

  override def getUri: URI = URI.create("meeting:///")

  override def getFileStatus(path: Path): FileStatus = {
    if (!isOpening.get()) MeetingFileSystem.statuses.incrementAndGet()
    super.getFileStatus(path)
  }

  override def open(path: Path, bufferSize: Int): FSDataInputStream = {
    isOpening.set(true)
    val in = try super.open(path, bufferSize) finally isOpening.set(false)
    MeetingFileSystem.opened.incrementAndGet()
    MeetingFileSystem.meeting.countDown()
    if (!MeetingFileSystem.meeting.await(5, TimeUnit.MINUTES)) {
      throw new IllegalStateException("the files are not read at the same time")
    }
    in
  }
}

object MeetingFileSystem {
  val opened = new AtomicInteger
  val statuses = new AtomicInteger
  @volatile var meeting = new CountDownLatch(0)

  def expect(files: Int): Unit = {
    meeting = new CountDownLatch(files)
    statuses.set(0)
  }
}
