// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream}
import java.nio.ByteBuffer
import java.util.Arrays
import java.util.zip.CRC32C

import scala.util.Random

import io.github.sparkckpt.engine.backend.HashMapStateBackend
import io.github.sparkckpt.engine.bytes.EntryCursor
import io.github.sparkckpt.engine.compaction.SnapshotSource
import io.github.sparkckpt.engine.support.BackendTesting
import io.github.sparkckpt.engine.table.KeyGroupFunction
import org.scalatest.funsuite.AnyFunSuite

class SegmentSuite extends AnyFunSuite with BackendTesting {
  private val K = 8

  /** The key group is the first byte of the key. */
  private val byFirstByte: KeyGroupFunction = (b: AnyRef, o: Long, _: Int) =>
    org.apache.spark.unsafe.Platform.getByte(b, o).toInt

  private def k(group: Int, rest: Long): Array[Byte] = longs((group.toLong << 56) | rest)

  private def small(): HashMapStateBackend = {
    val b = newBackend(K)
    val f = b.declareFamily("default", byFirstByte)
    val l = b.declareFamily("lists", byFirstByte, multiValue = true)
    b.openForWrite(0)
    put(f, k(5, 1), longs(11))
    put(f, k(2, 2), longs(12, 13))
    put(f, k(5, 3), longs(14))
    put(f, k(2, 4), longs(15))
    val key = k(2, 9)
    l.append(key, Start, 8, longs(1), Start, 8)
    l.append(key, Start, 8, longs(2, 3), Start, 16)
    b.commit()
    b
  }

  private def groups(b: HashMapStateBackend): RestoreFilter = RestoreFilter.range(0, b.maxParallelism - 1)

  test("a delta has the documented bytes") {
    val b = small()
    val s = b.deltaBytes()
    assert(s.info.keyGroups.toSeq == Seq(2, 5))
    assert(s.info.entries == 5)
    assert(s.info.bytes == s.bytes.length)
    assert(s.info.offsets(0) == 0)
    val in = new DataInputStream(new ByteArrayInputStream(s.bytes))

    def header(group: Int, sections: Int, from: Int): Int = {
      assert(in.readInt() == 0x434B4247)
      assert(Seq.fill(4)(in.readUnsignedByte()) == Seq(1, 2, 0, 0))
      assert(in.readInt() == group)
      assert(in.readLong() == 1)
      assert(in.readInt() == sections)
      val length = in.readInt()
      val crc = new CRC32C
      crc.update(s.bytes, from, 28)
      crc.update(s.bytes, from + 32, length)
      assert(in.readInt() == crc.getValue.toInt)
      length
    }

    val first = header(2, 2, 0)
    assert(s.info.offsets(1) == 32 + first)
    assert(in.readUTF() == "")
    assert(in.readByte() == 2)
    assert(in.readInt() == 2)
    // In the order of hashes, since it is the first version.
    assert(Seq.fill(3)(in.readInt()) == Seq(8, 8, 16))
    assert(Seq.fill(2)(in.readLong()) == Seq((2L << 56) | 4, (2L << 56) | 2))
    assert(Seq.fill(3)(in.readLong()) == Seq(15, 12, 13))
    assert(in.readUTF() == "lists")
    assert(in.readByte() == 7)
    assert(Seq.fill(3)(in.readInt()) == Seq(1, 8, 4 + 4 + 8 + 4 + 16))
    assert(in.readLong() == ((2L << 56) | 9))
    assert(Seq.fill(2)(in.readInt()) == Seq(2, 8))
    assert(in.readLong() == 1)
    assert(in.readInt() == 16)
    assert(Seq.fill(2)(in.readLong()) == Seq(2, 3))
    header(5, 1, 32 + first)
    assert(in.readUTF() == "")
    assert(in.readByte() == 6)
    assert(Seq.fill(3)(in.readInt()) == Seq(2, 8, 8))
    assert(Seq.fill(2)(in.readLong()) == Seq((5L << 56) | 3, (5L << 56) | 1))
    assert(Seq.fill(2)(in.readLong()) == Seq(14, 11))
    assert(in.available() == 0)
  }

  test("rows appended to a list have the documented bytes, and the list is not among them") {
    val b = small()
    b.openForWrite(1)
    val key = k(2, 9)
    val list = b.table("lists")
    list.append(key, Start, 8, longs(4), Start, 8)
    list.append(key, Start, 8, longs(5, 6), Start, 16)
    b.commit()
    // The same bytes as in tests/test_segments.py.
    val expected = "434b424701020000000000020000000000000002000000010000003c01d3968f" +
      "00056c697374730f00000001000000080000002002000000000000090000000800000000000000040000001000000000000000050" +
      "000000000000006"
    assert(b.deltaBytes().bytes.map(x => f"$x%02x").mkString == expected)
  }

  test("rows appended to a key that is not there, or cut off, are corrupt") {
    val b = small()
    val first = b.deltaBytes()
    b.openForWrite(1)
    b.table("lists").append(k(2, 9), Start, 8, longs(4), Start, 8)
    b.commit()
    val second = b.deltaBytes()

    def failure(version: Long, segments: SegmentBytes*): String = intercept[StateStreamDamagedException] {
      newBackend(K).restore(version, 0, segments.map(segment(isBase = false, _)), groups(b))
    }.what
    assert(failure(2, second).contains("missing key"))
    val rowLengthAt = second.bytes.length - 12
    ByteBuffer.wrap(second.bytes).putInt(rowLengthAt, 9)
    val crc = new CRC32C
    crc.update(second.bytes, 0, 28)
    crc.update(second.bytes, 32, second.bytes.length - 32)
    ByteBuffer.wrap(second.bytes).putInt(28, crc.getValue.toInt)
    assert(failure(2, first, second).contains("appended row"))
  }

  test("a delta names removed keys, and no key that came and went") {
    val b = small()
    b.openForWrite(1)
    val f = b.table("default")
    remove(f, k(5, 1))
    put(f, k(1, 7), longs(7))
    remove(f, k(1, 7))
    remove(f, k(1, 8))
    val s = b.deltaBytes()
    assert(s.info.keyGroups.toSeq == Seq(5))
    assert(s.info.entries == 1)
    // Name, flags, one entry, key length, -1, key.
    assert(ByteBuffer.wrap(s.bytes).getInt(32 + 2 + 1 + 4 + 4) == -1)
    assert(s.bytes.length == 32 + 2 + 1 + 4 + 4 + 4 + 8)
    assert(b.rowsRemoved == 1 && b.rowsUpdated == 0)
  }

  test("a batch without changes and an empty state give empty segments") {
    val b = newBackend(K)
    b.declareFamily("default", byFirstByte)
    b.openForWrite(0)
    val s = b.deltaBytes()
    assert(s.bytes.isEmpty && s.info.keyGroups.isEmpty && s.info.offsets.isEmpty)
    b.commit()
    val all = base(b)
    assert(all.bytes.isEmpty)
    val other = newBackend(K)
    other.restore(3, 0, Seq(segment(isBase = true, all), segment(isBase = false, s)), groups(b))
    assert(other.version == 3 && other.rowCount == 0)
  }

  test("every damaged byte is found") {
    val b = small()
    val delta = b.deltaBytes()
    b.fold()
    val all = base(b)
    for ((s, isBase) <- Seq(delta -> false, all -> true); i <- s.bytes.indices; mask <- Seq(1, 0x80, 0xFF)) {
      val damaged = s.bytes.clone()
      damaged(i) = (damaged(i) ^ mask).toByte
      val other = newBackend(K)
      val e = intercept[StateStreamDamagedException] {
        other.restore(1, 5, Seq(StateSegment(isBase, source(damaged), s.info.offsets)), groups(b))
      }
      assert(e.file == "test" && e.getMessage.contains("test"))
      assert(other.foldedVersion == -1 && other.rowCount == 0 && !other.canServe(1))
    }
  }

  test("a stream that ends early, offsets that lie and blocks in the wrong place are found") {
    val b = small()
    val s = b.deltaBytes()

    def fails(
        bytes: Array[Byte],
        offsets: Array[Long],
        isBase: Boolean = false,
        version: Long = 1): String = {
      val other = newBackend(K)
      val filter = RestoreFilter.range(0, 5)
      intercept[StateStreamDamagedException] {
        other.restore(version, 0, Seq(StateSegment(isBase, source(bytes), offsets)), filter)
      }.what
    }

    for (n <- s.bytes.indices) fails(Arrays.copyOf(s.bytes, n), s.info.offsets)
    for (o <- Seq(-1L, 1L, s.bytes.length.toLong, Long.MaxValue)) fails(s.bytes, Array(o))
    assert(fails(s.bytes, s.info.offsets, isBase = true).contains("kind"))
    assert(fails(s.bytes, s.info.offsets, version = 0).contains("version 1"))
    val other = newBackend(K)
    val e = intercept[StateStreamDamagedException] {
      other.restore(1, 0, Seq(segment(isBase = false, s)), RestoreFilter.range(3, 5))
    }
    assert(e.what.contains("key group 2"))
  }

  test("key groups, and with a filter keys, can be loaded in part") {
    val b = small()
    b.fold()
    val all = base(b)
    val at = all.info.keyGroups.indexOf(5)
    val other = newBackend(K)
    val one = StateSegment(isBase = true, source(all.bytes), Array(all.info.offsets(at)))
    other.restore(1, 0, Seq(one), RestoreFilter.range(5, 5))
    assert(other.rowCount == 2)
    val third: RowFilter = (family: String, base: AnyRef, offset: Long, length: Int) =>
      family == "default" && bytes(base, offset, length)(7) == 3
    other.restore(1, 0, Seq(segment(isBase = true, all).copy(rows = third)), groups(b))
    assert(contents(other.reader("default", 1)).containsKey(ByteBuffer.wrap(k(5, 3))))
    assert(other.rowCount == 1)
  }

  test("a segment that takes several reads, in the middle of a file") {
    val r = new Random(1)
    val b = newBackend(K)
    val f = b.declareFamily("default", groupsByHash(K))
    b.openForWrite(0)
    for (i <- 0 until 3000) put(f, longs(i, 0), randomBytes(r, 8 * r.nextInt(2000)))
    b.commit()
    b.fold()
    val all = base(b)
    assert(all.bytes.length > (1 << 24))
    val file = new ByteArrayOutputStream
    file.write(new Array[Byte](12345))
    file.write(all.bytes)
    file.write(new Array[Byte](99))
    val other = newBackend(K)
    val moved = StateSegment(isBase = true, source(file.toByteArray), all.info.offsets.map(_ + 12345))
    other.restore(1, 3000, Seq(moved), groups(b))
    assertSame(contents(other.reader("default", 1)), contents(b.reader("default", 1)))
  }

  test("entries of the same lengths are written in the same way, whether they are copied at once or one by one") {
    val r = new Random(9)
    for (values <- Seq(Seq(0), Seq(8), Seq(8, 16)); removals <- Seq(false, true)) {
      val backend = newBackend(K)
      val family = backend.declareFamily("default", groupsByHash(K))
      backend.openForWrite(0)
      for (i <- 0 until 3000) put(family, longs(i), randomBytes(r, values(r.nextInt(values.size))))
      backend.commit()
      val first = family.changes
      assertSameBytes(first, isBase = false, uniform = values.size == 1)
      backend.fold()
      val snapshot = family.table.snapshot()
      if (!snapshot.hasEvicted) {
        val all = new SnapshotSource("default", multiValue = false, snapshot)
        assertSameBytes(Seq(all), isBase = true, uniform = values.size == 1)
      }
      snapshot.close()
      backend.openForWrite(1)
      for (i <- 0 until 2000) put(family, longs(i), randomBytes(r, values.head))
      if (removals) remove(family, longs(1))
      backend.commit()
      assertSameBytes(family.changes, isBase = false, uniform = !removals)
    }
  }

  private def assertSameBytes(sources: Seq[SegmentSource], isBase: Boolean, uniform: Boolean): Unit = {
    val counts = new Array[Int](K)
    sources.head.countGroups(counts)
    assert(sources.head.gather(0, K, new UniformRows(counts)) == uniform)
    val Seq(atOnce, oneByOne) = Seq(sources, sources.map(new OneByOne(_))).map { of =>
      val out = new ByteArrayOutputStream
      val info = new SegmentWriter(K, idsAtOnce = 1500, minUniform = 1).write(of.toArray, isBase, 2, out)
      (info.entries, info.offsets.toSeq, out.toByteArray.toSeq)
    }
    assert(atOnce == oneByOne)
  }

  private final class OneByOne(of: SegmentSource) extends SegmentSource {
    override def family: String = of.family
    override def multiValue: Boolean = of.multiValue
    override def appends: Boolean = of.appends
    override def point(id: Int, cursor: EntryCursor): Unit = of.point(id, cursor)
    override def countGroups(counts: Array[Int]): Unit = of.countGroups(counts)
    override def fill(first: Int, until: Int, next: Array[Int], ids: Array[Int]): Unit =
      of.fill(first, until, next, ids)
    override def gather(first: Int, until: Int, rows: UniformRows): Boolean = false
  }

  test("ordering in many small steps gives the same bytes") {
    val b = small()
    b.openForWrite(1)
    val f = b.table("default")
    for (i <- 0 until 1000) put(f, k(i % K, i), longs(i))
    val once = b.deltaBytes()
    val sources = b.familyNames.toSeq.sorted.flatMap(name => b.table(name).changes)
    val out = new ByteArrayOutputStream
    val info = new SegmentWriter(K, idsAtOnce = 10).write(sources.toArray, isBase = false, 2, out)
    assert(Arrays.equals(out.toByteArray, once.bytes))
    assert(info.entries == 1000 && Arrays.equals(info.offsets, once.info.offsets))
  }

  test("deltas can be applied to what is there, and fail like a restore") {
    val b = small()
    val first = b.deltaBytes()
    b.openForWrite(1)
    put(b.table("default"), k(5, 1), longs(99))
    b.commit()
    val second = b.deltaBytes()
    val other = newBackend(K)
    other.restore(1, 0, Seq(segment(isBase = false, first)), groups(b))
    other.applyDeltas(2, Seq(segment(isBase = false, second)), groups(b))
    assertSame(contents(other.reader("default", 2)), contents(b.reader("default", 2)))
    second.bytes(40) = (second.bytes(40) ^ 1).toByte
    intercept[StateStreamDamagedException] {
      other.applyDeltas(3, Seq(segment(isBase = false, second)), groups(b))
    }
    assert(other.foldedVersion == -1)
    intercept[IllegalStateException](other.openForWrite(2))
    intercept[IllegalStateException](other.applyDeltas(3, Nil, groups(b)))
    other.restore(1, 0, Seq(segment(isBase = false, first)), groups(b))
    assert(other.rowCount == 5)
  }

  test("well-formed blocks with nonsense inside are found") {
    def block(body: Array[Byte], sections: Int = 1): Array[Byte] = {
      val b = ByteBuffer.allocate(32 + body.length)
      b.putInt(0x434B4247).putInt(0x01020000).putInt(3).putLong(1)
      b.putInt(sections).putInt(body.length).putInt(0).put(body)
      val crc = new CRC32C
      crc.update(b.array, 0, 28)
      crc.update(b.array, 32, body.length)
      b.putInt(28, crc.getValue.toInt).array
    }

    def section(flags: Int, ints: Int*): Array[Byte] = {
      val b = ByteBuffer.allocate(3 + 4 * ints.length)
      b.putShort(0).put(flags.toByte)
      ints.foreach(b.putInt)
      b.array
    }

    def load(bytes: Array[Byte]): HashMapStateBackend = {
      val b = newBackend(K)
      b.restore(1, 0, Seq(StateSegment(isBase = false, source(bytes), Array(0L))), groups(b))
      b
    }

    assert(load(block(section(6, 1, 0, 0))).rowCount == 1)
    val bad = Seq(
      section(8, 0, 0, 0),
      section(6, -1, 0, 0),
      section(6, 1, 4, 0, 0),
      section(6, 1, -8, 0, 0),
      section(6, 1, 8, 0, 0),
      section(6, 1, 0, 8, 0),
      section(6, 1, 0, -2),
      section(6, Int.MaxValue, 0x7FFFFFF8, 0),
      section(6, Int.MaxValue, 0, 0),
      section(0, Int.MaxValue, 0, 0),
      section(7, 1, 0, 2, 0),
      section(6, 1, 0, 0, 77),
      Array[Byte](0, 2, -1, -1, 0),
      Array[Byte](0, 9, 65),
      Array[Byte](0))
    bad.foreach(s => intercept[StateStreamDamagedException](load(block(s))))
    intercept[StateStreamDamagedException](load(block(section(6, 1, 0, 0), sections = 2)))
    intercept[StateStreamDamagedException](load(block(Array(), sections = -1)))
  }

  test("lists where single values are declared are an error") {
    val b = small()
    val s = b.deltaBytes()
    val other = newBackend(K)
    other.declareFamily("lists", byFirstByte)
    // Declared but empty: the stream's contents decide, and the next declaration reports it.
    other.restore(1, 0, Seq(segment(isBase = false, s)), groups(b))
    intercept[IllegalArgumentException](other.declareFamily("lists", byFirstByte))
  }
}
