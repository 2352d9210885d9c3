// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

import java.io.{ByteArrayOutputStream, File}
import java.nio.ByteBuffer
import java.nio.file.Files
import java.util.Arrays
import java.util.zip.CRC32C

import scala.util.Random

import io.github.sparkckpt.engine.backend.{HashMapStateBackend, HashMapTable}
import io.github.sparkckpt.engine.compaction.{BaseWriter, MergeInput, SegmentMerger}
import io.github.sparkckpt.engine.support.BackendTesting
import org.scalatest.funsuite.AnyFunSuite

/** Segments with compressed blocks, read and written by everything that reads and writes segments. */
class CompressionSuite extends AnyFunSuite with BackendTesting {
  private val K = 4
  private val Codecs = BlockCodec.All.filterNot(_ == BlockCodec.Uncompressed)

  private def newBackend(codec: BlockCodec): HashMapStateBackend =
    newBackend(K, codec = codec)

  private def families(b: HashMapStateBackend): (HashMapTable, HashMapTable) =
    (b.declareFamily("default", groupsByHash(K)), b.declareFamily("lists", groupsByHash(K), multiValue = true))

  /** A batch that puts, replaces and removes keys, and appends to lists. */
  private def batch(b: HashMapStateBackend, version: Int, keys: Int): SegmentBytes = {
    val (single, lists) = families(b)
    b.openForWrite(version)
    for (i <- 0 until keys) put(single, longs(i, 7), longs(version, i, 0, 0, 0))
    for (i <- version until keys by 5) remove(single, longs(i, 7))
    for (i <- 0 until keys by 3) lists.append(longs(i), Start, 8, longs(version, 0), Start, 16)
    b.commit()
    val delta = b.deltaBytes()
    b.fold()
    delta
  }

  private def state(b: HashMapStateBackend): Seq[Model] =
    Seq("default", "lists").map(name => contents(b.reader(name, b.foldedVersion)))

  private def assertSameState(found: HashMapStateBackend, expected: HashMapStateBackend): Unit =
    state(found).zip(state(expected)).foreach { case (one, other) => assertSame(one, other) }

  private def restored(version: Long, segments: Seq[StateSegment]): HashMapStateBackend = {
    val b = newBackend(K)
    families(b)
    b.restore(version, 0, segments, everything)
    b
  }

  /** A base of single values, whose blocks have several chunks. */
  private def chunkedBase(codec: BlockCodec, keys: Int = 6000): (HashMapStateBackend, SegmentBytes) = {
    val r = new Random(7)
    val b = newBackend(codec)
    val single = b.declareFamily("default", groupsByHash(K))
    b.openForWrite(0)
    // Some chunks do not become smaller: they stay as they are.
    for (i <- 0 until keys) {
      put(single, longs(i, i), if (i % 7 == 0) randomBytes(r, 4000) else longs(Seq.fill(i % 5)(1L): _*))
    }
    b.commit()
    b.fold()
    (b, base(b))
  }

  /** Failure of a load of the first block of a segment after a change of its bytes, with the checksum for it. */
  private def failure(s: SegmentBytes, isBase: Boolean)(change: ByteBuffer => Unit): String = {
    val end = if (s.info.offsets.length == 1) s.bytes.length else s.info.offsets(1).toInt
    val block = Arrays.copyOf(s.bytes, end)
    change(ByteBuffer.wrap(block))
    val crc = new CRC32C
    crc.update(block, 0, 28)
    crc.update(block, 32, block.length - 32)
    ByteBuffer.wrap(block).putInt(28, crc.getValue.toInt)
    val loaded = intercept[StateStreamDamagedException](
      restored(1, Seq(StateSegment(isBase, source(block), Array(0L))))).what
    if (isBase && s.info.isOrdered) {
      val reader = new SegmentReader((_: String, _: Boolean) => null, everything)
      reader.start(StateSegment(isBase, source(block), Array(0L)))
      // Lookups find it too, or only what they need of the block.
      try reader.placesOf(0, 1) catch { case e: StateStreamDamagedException => assert(e.what == loaded) }
    }
    loaded
  }

  private def newFile(): File = Files.createTempDirectory("rows").resolve("spill").toFile

  private def codecs(s: SegmentBytes): Set[Int] = s.info.offsets.map(at => s.bytes(at.toInt + 6).toInt).toSet

  for (codec <- Codecs) {
    test(s"bases and deltas are smaller and say the same: ${codec.name}") {
      val plain = newBackend(BlockCodec.Uncompressed)
      val packed = newBackend(codec)
      val deltas = (0 until 4).map(version => (batch(plain, version, 300), batch(packed, version, 300)))
      for ((one, other) <- deltas :+ (base(plain) -> base(packed))) {
        assert(other.bytes.length < one.bytes.length / 2)
        assert(codecs(one) == Set(0) && codecs(other) == Set(codec.id))
        assert(!one.info.isCompressed && other.info.isCompressed && !other.info.isOrdered)
        assert(other.info.bytes == other.bytes.length && other.info.entries == one.info.entries)
      }
      assertSameState(restored(4, Seq(segment(isBase = true, base(packed)))), plain)
      assertSameState(restored(4, deltas.map { case (_, delta) => segment(isBase = false, delta) }), plain)
    }

    test(s"chains of several codecs load, and merge: ${codec.name}") {
      val all = BlockCodec.All
      var writer = newBackend(codec)
      var deltas = Seq.empty[SegmentBytes]
      for (version <- 0 until 6) {
        deltas :+= batch(writer, version, 200)
        // The next driver has another setting.
        val next = newBackend(all(version % all.size))
        families(next)
        next.restore(version + 1, 0, deltas.map(segment(isBase = false, _)), everything)
        writer = next
      }
      assert(deltas.flatMap(codecs).toSet == all.map(_.id).toSet)
      val inputs = deltas.map(delta => MergeInput(delta.info.keyGroups, segment(isBase = false, delta)))
      val merged = new SegmentMerger(codec, window = 500).mergeToBytes(inputs, 6, 1 << 20, () => ())
      assert(codecs(merged) == Set(codec.id) && merged.info.isCompressed)
      assertSameState(restored(6, Seq(segment(isBase = false, merged))), writer)
    }

    test(s"what does not become smaller stays as it is: ${codec.name}") {
      val r = new Random(1)
      val b = newBackend(codec)
      val (single, _) = families(b)
      b.openForWrite(0)
      for (i <- 0 until 40) put(single, randomBytes(r, 8), randomBytes(r, 64))
      b.commit()
      val random = b.deltaBytes()
      assert(codecs(random) == Set(0) && !random.info.isCompressed)
      b.fold()
      assertSameState(restored(1, Seq(segment(isBase = false, random))), b)
      b.openForWrite(1)
      put(single, longs(1), longs(0))
      b.commit()
      assert(codecs(b.deltaBytes()) == Set(0), "a few bytes")
    }

    test(s"a base sorted on the local disk is compressed: ${codec.name}") {
      val writer = new BaseWriter(K, 500, codec, newFile _)
      val out = new ByteArrayOutputStream
      val info = try {
        writer.startFamily("default", multiValue = false)
        for (i <- 0 until 500) {
          val key = longs(i, 7)
          writer.add(groupsByHash(K).keyGroup(key, Start, 16), key, Start, 16, longs(1, 1, 1), Start, 24)
        }
        writer.write(3, out)
      } finally writer.close()
      assert(info.isCompressed && out.size == info.bytes && out.size < 500 * 40 / 2)
      val found = restored(3, Seq(StateSegment(isBase = true, source(out.toByteArray), info.offsets)))
      assert(found.rowCount == 500 && get(found.reader("default", 3), longs(499, 7)).toSeq == longs(1, 1, 1).toSeq)
    }

    test(s"bases of single values are cut into chunks, in the order of hashes: ${codec.name}") {
      val (b, s) = chunkedBase(codec)
      assert(codecs(s) == Set(codec.id) && s.info.isCompressed && s.info.isOrdered)
      assert(s.info.offsets.map(at => s.bytes(at.toInt + 7).toInt).toSet == Set(SegmentFormat.ChunkBits))
      val loaded = newBackend(codec)
      loaded.declareFamily("default", groupsByHash(K))
      loaded.restore(1, 0, Seq(segment(isBase = true, s)), everything)
      assertSame(contents(loaded.reader("default", 1)), contents(b.reader("default", 1)))
    }

    test(s"chunks that make no sense are found: ${codec.name}") {
      val (_, s) = chunkedBase(codec)
      def found(change: ByteBuffer => Unit): String = failure(s, isBase = true)(change)
      val bytes = ByteBuffer.wrap(s.bytes)
      val (plain, chunk) = (bytes.getInt(32), bytes.getInt(36))
      assert(found(_.putInt(32, -1)).contains("a compressed body of -1 bytes"))
      assert(found(_.putInt(32, Int.MaxValue)).contains("a compressed body"))
      assert(found(_.putInt(32, plain + (1 << 20))).nonEmpty)
      assert(found(_.putInt(36, 0)).contains("a chunk of 0 bytes"))
      assert(found(_.putInt(36, (1 << 13) + 1)).contains("a chunk of 8193 bytes"))
      assert(found(_.putInt(36, chunk - 1)).contains("in a body of"))
      assert(found(_.putInt(36, chunk + 1)).contains("in a body of"))
      assert(found(_.put(7, 9.toByte)).contains("chunks of 2^9 bytes"))
      assert(found(_.put(7, 25.toByte)).contains("chunks of 2^25 bytes"))
      assert(found(_.put(7, -1.toByte)).contains("chunks of 2^-1 bytes"))
      assert(found(_.put(6, 0.toByte)).contains("without a codec"))
      val first = 32 + 4 + 4 * ((plain + (1 << 13) - 1) >>> 13)
      assert(found(b => (first until first + chunk).foreach(b.put(_, 0x55.toByte))).contains("chunk 0 of the body"))
    }

    test(s"every damaged byte is found: ${codec.name}") {
      val s = batch(newBackend(codec), 0, 200)
      for (i <- s.bytes.indices; mask <- Seq(1, 0xFF)) {
        val damaged = s.bytes.clone()
        damaged(i) = (damaged(i) ^ mask).toByte
        val e = intercept[StateStreamDamagedException] {
          restored(1, Seq(StateSegment(isBase = false, source(damaged), s.info.offsets)))
        }
        assert(e.file == "test")
      }
    }

    test(s"a well-formed block whose body does not decompress is found: ${codec.name}") {
      val s = batch(newBackend(codec), 0, 200)
      def found(change: ByteBuffer => Unit): String = failure(s, isBase = false)(change)
      val end = if (s.info.offsets.length == 1) s.bytes.length else s.info.offsets(1).toInt
      val plain = ByteBuffer.wrap(s.bytes).getInt(32)
      assert(found(_.putInt(32, plain - 1)).contains(codec.name))
      assert(found(_.putInt(32, plain + 1)).contains(codec.name))
      assert(found(_.putInt(32, -1)).contains("-1 bytes"))
      assert(found(_.putInt(32, Int.MaxValue)).contains("bytes"))
      assert(found(b => (36 until end).foreach(b.put(_, 0x55.toByte))).contains(codec.name))
      assert(found(_.put(6, 9.toByte)).contains("unknown block codec 9"))
    }
  }
}
