// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.compaction

import java.io.{ByteArrayOutputStream, File, IOException, OutputStream}
import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.{Files, Path}
import java.nio.file.StandardOpenOption.WRITE

import scala.util.Random

import io.github.sparkckpt.engine.backend.HashMapStateBackend
import io.github.sparkckpt.engine.pages.LocalFile
import io.github.sparkckpt.engine.segment._
import io.github.sparkckpt.engine.support.BackendTesting
import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

/** Base segments made by an external sort. */
class BaseWriterSuite extends AnyFunSuite with BackendTesting with BeforeAndAfterEach {
  private val maxParallelism = 16
  private val groups = groupsByHash(maxParallelism)
  private var directory: File = _
  private var files = 0

  override def beforeEach(): Unit = {
    directory = Files.createTempDirectory("base-writer").toFile
    files = 0
  }

  override def afterEach(): Unit = {
    assert(directory.list().isEmpty, "a temporary file was left")
    directory.delete()
  }

  private val codec = BlockCodec.Uncompressed

  private def newWriter(bufferBytes: Long) = new BaseWriter(maxParallelism, bufferBytes, codec, () => {
    files += 1
    new File(directory, files.toString)
  })

  private def add(writer: BaseWriter, key: Array[Byte], value: Array[Byte]): Unit = writer.add(
    groups.keyGroup(key, Start, key.length), key, Start, key.length, value, Start, value.length)

  private def write(writer: BaseWriter): SegmentBytes = {
    val out = new ByteArrayOutputStream
    val info = try writer.write(version = 7, out) finally writer.close()
    SegmentBytes(info, out.toByteArray)
  }

  private def restored(written: SegmentBytes): HashMapStateBackend = {
    val backend = new HashMapStateBackend(maxParallelism)
    backend.restore(7, written.info.entries, Seq(segment(isBase = true, written)), everything)
    backend
  }

  private def contentsOf(backend: HashMapStateBackend, family: String): Model = contents(backend.reader(family, 7))

  private def digestsOf(written: SegmentBytes): Map[String, (Long, Long)] =
    SegmentDigests.of(segment(isBase = true, written), newest = 7).map { case (name, d) => (name, (d.rows, d.sum)) }

  for (buffer <- Seq(1L, 200L, 5000L, 1L << 20)) {
    test(s"all rows of two families come back, with a buffer of $buffer bytes") {
      val random = new Random(buffer)
      val uniform = new Model
      val varied = new Model
      val writer = newWriter(buffer)
      writer.startFamily("default", multiValue = false)
      (0 until 400).foreach { i =>
        val (key, value) = (longs(i), longs(random.nextLong()))
        uniform.put(ByteBuffer.wrap(key), ByteBuffer.wrap(value))
        add(writer, key, value)
      }
      writer.startFamily("varied", multiValue = false)
      (0 until 300).foreach { i =>
        val key = longs(Seq.fill(1 + random.nextInt(4))(i.toLong): _*)
        val value = randomBytes(random, 8 * random.nextInt(6))
        varied.put(ByteBuffer.wrap(key), ByteBuffer.wrap(value))
        add(writer, key, value)
      }
      val written = write(writer)
      assert(written.info.entries == 700 && written.info.bytes == written.bytes.length)
      val backend = restored(written)
      assertSame(contentsOf(backend, "default"), uniform)
      assertSame(contentsOf(backend, "varied"), varied)
      assert((files > 0) == (buffer < (1L << 20)))
    }

    test(s"lists keep their order, with a buffer of $buffer bytes") {
      val random = new Random(buffer)
      val expected = new RowDigest
      val writer = newWriter(buffer)
      writer.startFamily("lists", multiValue = true)
      (0 until 100).foreach { i =>
        val key = longs(i)
        (0 to random.nextInt(5)).foreach { place =>
          val row = randomBytes(random, 8 * (1 + random.nextInt(3)))
          expected.add(key, Start, key.length, place, row, Start, row.length)
          add(writer, key, row)
        }
      }
      val written = write(writer)
      assert(written.info.entries == 100)
      assert(digestsOf(written) == Map("lists" -> ((expected.rows, expected.sum))))
      val again = base(restored(written))
      assert(digestsOf(again) == digestsOf(written))
    }
  }

  test("no rows make an empty segment") {
    val writer = newWriter(1 << 20)
    writer.startFamily("default", multiValue = false)
    val written = write(writer)
    assert(written.info.entries == 0 && written.info.bytes == 0 && written.info.keyGroups.isEmpty)
  }

  test("a key of no bytes is one entry") {
    val writer = newWriter(1 << 20)
    writer.startFamily("default", multiValue = false)
    add(writer, Array.emptyByteArray, longs(1))
    assert(restored(write(writer)).rowCount == 1)
  }

  test("the digest depends on key, value and place, and not on the order of keys") {
    def digest(rows: (Int, Int, Int)*): Long = {
      val digest = new RowDigest
      rows.foreach { case (k, place, v) => digest.add(longs(k), Start, 8, place, longs(v), Start, 8) }
      digest.sum
    }
    assert(digest((1, 0, 5), (2, 0, 6)) == digest((2, 0, 6), (1, 0, 5)))
    val different =
      Seq(digest((1, 0, 5), (2, 0, 6)), digest((1, 0, 6), (2, 0, 5)), digest((1, 1, 5), (2, 0, 6)), digest((1, 0, 5)))
    assert(different.distinct == different)
  }

  test("the digest depends on the lengths of key and value, and on each byte of a value") {
    def digest(key: Array[Byte], value: Array[Byte]): Long = {
      val digest = new RowDigest
      digest.add(key, Start, key.length, 0, value, Start, value.length)
      digest.sum
    }
    val words = longs(1, 2, 3)
    val splits = (0 to 24 by 8).map(at => digest(words.take(at), words.drop(at)))
    val zeros = (0 to 17).map(length => digest(longs(1), new Array[Byte](length)))
    val changed = (0 until 13).map(at => digest(longs(1), new Array[Byte](13).updated(at, 1.toByte)))
    val all = splits ++ zeros ++ changed
    assert(all.distinct == all)
  }

  for {
    (kind, valueBytes) <- Seq("small rows" -> 16, "rows of a third of a page" -> 90000, "rows over a page" -> 300000)
  } {
    test(s"memory is bounded by the buffer, with $kind") {
      val (buffer, total) = (4L << 20, 24L << 20)
      val writer = newWriter(buffer)
      writer.startFamily("default", multiValue = false)
      val value = new Array[Byte](valueBytes)
      val rows = (total / (valueBytes + 8)).toInt
      var largest = 0L
      (0 until rows).foreach { i =>
        add(writer, longs(i), value)
        largest = math.max(largest, writer.heldBytes)
      }
      assert(largest > buffer / 2 && largest <= buffer + (1 << 20))
      val out = OutputStream.nullOutputStream()
      assert((try writer.write(version = 7, out) finally writer.close()).entries == rows)
    }
  }

  test("a damaged block is found when it is read back") {
    val writer = newWriter(1 << 20)
    writer.startFamily("default", multiValue = false)
    (0 until 50).foreach(i => add(writer, longs(i), longs(i)))
    val written = write(writer)
    written.bytes(written.bytes.length / 2) = (written.bytes(written.bytes.length / 2) ^ 1).toByte
    intercept[StateStreamDamagedException](digestsOf(written))
  }

  private val open = LocalFile.open

  /** Adds rows until some are in the sort file, whose channel is `channel` then. */
  private def sorting(writer: BaseWriter)(opened: (Path, FileChannel) => FileChannel): Unit = {
    LocalFile.open = (path, options) => opened(path, open(path, options))
    try {
      writer.startFamily("default", multiValue = false)
      // Of various lengths, so the base needs each byte of the file.
      (0 until 400).foreach(i => add(writer, longs(Seq.fill(1 + i % 3)(i.toLong): _*), longs(Seq.fill(i % 4)(7L): _*)))
    } finally LocalFile.open = open
  }

  private def failure(body: => Any): SortFileException = {
    val failed = intercept[SortFileException](body)
    assert(failed.getMessage.contains(new File(directory, "1").getPath) && failed.getMessage.contains("Check the disk"))
    failed
  }

  test("a full disk fails the sort file, by its name") {
    val writer = newWriter(5000)
    try {
      val failed = failure(sorting(writer) { (_, channel) =>
        channel.close()
        FileChannel.open(Path.of("/dev/full"), WRITE)
      })
      assert(failed.what.contains("cannot be written") && failed.what.contains("No space left on device"))
    } finally writer.close()
  }

  test("a sort file that cannot be created is an error that names it") {
    val writer = newWriter(5000)
    assert(failure(sorting(writer)((_, channel) => {
      channel.close()
      throw new IOException("no space")
    })).what.contains("cannot be created"))
    writer.close()
  }

  for ((damage, found) <- Seq("a flipped bit" -> "checksum", "a cut" -> "ends at")) {
    test(s"$damage in the sort file fails the base") {
      // Each place in turn: lengths, keys and values.
      var at = 0L
      var size = 1L
      while (at < size) {
        val writer = newWriter(5000)
        files = 0
        var sorted: FileChannel = null
        sorting(writer) { (_, channel) =>
          sorted = channel
          channel
        }
        size = sorted.size()
        if (damage == "a cut") {
          sorted.truncate(at)
        } else {
          val one = ByteBuffer.allocate(1)
          sorted.read(one, at)
          one.put(0, (one.get(0) ^ 1).toByte).rewind()
          sorted.write(one, at)
        }
        assert(failure(write(writer)).what.contains(found), s"at $at of $size")
        at += 61
      }
      assert(size > 4000)
    }
  }
}
