// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.{Files, Path}
import java.nio.file.StandardOpenOption.{READ, WRITE}

import scala.util.Random

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.unsafe.Platform

class LocalFileSuite extends AnyFunSuite with BeforeAndAfterEach {
  private val r = new Random(1)
  private val directory = Files.createTempDirectory("local-file")
  private val open = LocalFile.open
  private var path: Path = _
  private var traffic: LocalTraffic = _

  override def beforeEach(): Unit = {
    path = directory.resolve(r.nextLong().toHexString)
    traffic = new LocalTraffic
  }

  override def afterEach(): Unit = LocalFile.open = open

  private def newFile() = new LocalFile(path, traffic)

  private def bytes(length: Int): Array[Byte] = {
    val b = new Array[Byte](length)
    r.nextBytes(b)
    b
  }

  private def damage(at: Long)(change: FileChannel => Unit): Unit = {
    val channel = FileChannel.open(path, READ, WRITE)
    try change(channel.position(at)) finally channel.close()
  }

  private def flip(at: Long): Unit = damage(at) { channel =>
    val one = ByteBuffer.allocate(1)
    channel.read(one, at)
    one.put(0, (one.get(0) ^ 1).toByte).rewind()
    channel.write(one, at)
  }

  private def lost(body: => Any): LocalStateException = {
    val failure = intercept[LocalStateException](body)
    assert(failure.getMessage.contains(path.toString))
    failure
  }

  test("pages of all lengths come back, whole and in part") {
    val file = newFile()
    val contents = Seq(1, 8, 4095, 4096, 4097, 65408, 65536, 65537, 300000).map(bytes)
    val pages = contents.map(b => file.write(b, b.length))
    for ((page, b) <- pages.zip(contents)) {
      assert(page.read().sameElements(b))
      val last = (b.length - 1) & -LocalFile.BlockBytes
      val part = new Array[Byte](b.length - last + 5)
      file.read(page, last, b.length, part, 5)
      assert(part.drop(5).sameElements(b.drop(last)))
    }
    assert(file.size == file.bytes && file.size < Files.size(path) * 1.125)
    assert(traffic.writtenBytes.sum() == contents.map(_.length).sum)
  }

  test("the place of a released page is used again, once it is free") {
    val file = newFile()
    val pages = Seq.fill(10)(file.write(bytes(60000), 60000))
    val size = file.size
    pages(3).retain()
    pages(3).release()
    pages(4).release()
    assert(file.bytes == size * 9 / 10)
    val other = bytes(61000)
    val again = file.write(other, other.length)
    assert(again.firstBlock == pages(4).firstBlock && again.read().sameElements(other))
    pages(3).release()
    file.write(other, other.length)
    assert(file.size == size)
    file.write(other, other.length)
    assert(file.size > size)
  }

  test("a record comes with one read, or two if it is longer than expected") {
    val file = newFile()
    val page = new Array[Byte](65000 / 8 * 8)
    val lengths = Seq(16, 8000, 40, 0, 30000)
    var at = 0
    val starts = lengths.map { length =>
      val value = bytes(length)
      val start = at
      Platform.putLong(
        page, Platform.BYTE_ARRAY_OFFSET + at, TableRecord.header(length, 1, 3))
      System.arraycopy(value, 0, page, at + 16, length)
      at += 16 + length
      start
    }
    val local = file.write(page, at)
    for ((start, length) <- starts.zip(lengths); expected <- Seq(0, 100, 10000, 100000)) {
      val before = traffic.reads.sum()
      val record = local.record(start, 0, expected)
      assert(record.sameElements(page.slice(start, start + 16 + length)))
      assert(traffic.reads.sum() - before <= (if (length < 100) 1 else 2))
    }
  }

  for (what <- Seq("a page", "a record")) {
    test(s"a flipped bit is found by reading $what, and the file is not trusted again") {
      val file = newFile()
      val b = new Array[Byte](50000)
      val (first, second) = (file.write(b, b.length), file.write(b, b.length))
      flip(first.position + 4096 * 3 + 8 * 100 + 5)
      assert(!file.isBroken)
      val failure = lost(if (what == "a page") first.read() else first.record(4096 * 3, 0, 64))
      assert(failure.what.contains("checksum"))
      assert(file.isBroken)
      lost(second.read())
    }
  }

  test("another page in the place of a page is found") {
    val file = newFile()
    val b = bytes(4096)
    val page = file.write(b, b.length)
    damage(page.position)(_.write(ByteBuffer.wrap(bytes(4096))))
    lost(page.read())
  }

  test("a file that ends early is found") {
    val file = newFile()
    val page = file.write(bytes(50000), 50000)
    damage(0)(_.truncate(49999))
    assert(lost(page.read()).what.contains("ends before"))
  }

  test("a full disk is an error of writing") {
    LocalFile.open = (path, options) => {
      open(path, options).close()
      FileChannel.open(Path.of("/dev/full"), WRITE)
    }
    val file = newFile()
    val failure = lost(file.write(bytes(50000), 50000))
    assert(failure.what.contains("No space left on device") && file.isBroken)
  }

  test("a file that cannot be created is an error") {
    path = directory.resolve("missing").resolve("file")
    assert(lost(newFile()).what.contains("cannot be created"))
  }

  test("an interrupted thread reads and writes, stays interrupted, and disturbs no other") {
    val file = newFile()
    val b = bytes(50000)
    val page = file.write(b, b.length)
    Thread.currentThread().interrupt()
    assert(page.read().sameElements(b))
    val other = file.write(b, b.length)
    assert(Thread.interrupted())
    assert(other.read().sameElements(b) && !Thread.interrupted())
    assert(traffic.writtenBytes.sum() == 100000)
  }

  test("a file that was deleted is missed when it is opened again") {
    val file = newFile()
    val page = file.write(bytes(50000), 50000)
    Files.delete(path)
    Thread.currentThread().interrupt()
    try assert(lost(page.read()).what.contains("NoSuchFile")) finally Thread.interrupted()
  }

  test("the file goes with its last user") {
    val file = newFile()
    val b = bytes(10)
    val page = file.write(b, b.length)
    file.retain()
    file.release()
    assert(page.read().sameElements(b) && Files.exists(path))
    file.release()
    assert(!Files.exists(path))
    lost(page.read())
    assert(!Files.exists(path))
  }
}
