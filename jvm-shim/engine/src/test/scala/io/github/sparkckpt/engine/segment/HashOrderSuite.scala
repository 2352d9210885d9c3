// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

import java.nio.ByteBuffer

import scala.collection.mutable
import scala.util.Random

import io.github.sparkckpt.engine.bytes.Bytes
import io.github.sparkckpt.engine.support.BackendTesting
import org.scalatest.funsuite.AnyFunSuite

/** The order of rows in bases. */
class HashOrderSuite extends AnyFunSuite with BackendTesting {
  private val K = 4
  private val groups = groupsByHash(K)

  private def unsigned(key: Array[Byte]): Long = Bytes.hash(key, Start, key.length) & 0xFFFFFFFFL

  /** Keys of a segment in its order. */
  private def keysIn(s: SegmentBytes, isBase: Boolean): Seq[(Int, Array[Byte])] = {
    val found = mutable.Buffer.empty[(Int, Array[Byte])]
    val target = new SegmentTarget {
      override def put(
          keyGroup: Int,
          keyBase: AnyRef,
          keyOffset: Long,
          keyLength: Int,
          valueBase: AnyRef,
          valueOffset: Long,
          valueLength: Int): Unit = found += keyGroup -> bytes(keyBase, keyOffset, keyLength)

      override def append(
          keyBase: AnyRef,
          keyOffset: Long,
          keyLength: Int,
          rows: Int,
          rowsBase: AnyRef,
          rowsOffset: Long,
          rowsLength: Int): Boolean = false

      override def remove(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit = ()
    }
    new SegmentReader((_: String, _: Boolean) => target, (_: Int) => true).load(segment(isBase, s), 9)
    found.toSeq
  }

  for (rows <- Seq(1, 2, 100, 20000); (name, words) <- Seq("one length" -> 1, "many lengths" -> 40)) {
    test(s"a base of $rows rows of $name is ordered, and has all of them") {
      val r = new Random(rows)
      val model = new Model
      val source = newBackend(K)
      source.declareFamily("default", groups)
      source.openForWrite(0)
      for (i <- 0 until rows) {
        val k = longs(Seq.fill(1 + r.nextInt(words))(i.toLong): _*)
        val v = if (words == 1) longs(i) else randomBytes(r, r.nextInt(30))
        put(source.table("default"), k, v)
        model.put(ByteBuffer.wrap(k), ByteBuffer.wrap(v))
      }
      source.commit()
      val delta = source.deltaBytes()
      source.fold()
      val written = base(source)
      assert(written.info.isOrdered && delta.info.isOrdered)
      keysIn(written, isBase = true).groupBy(_._1).foreach { case (_, keys) =>
        val hashes = keys.map(key => unsigned(key._2))
        assert(hashes == hashes.sorted)
      }
      val restored = newBackend(K)
      restored.declareFamily("default", groups)
      restored.restore(1, rows, Seq(segment(isBase = true, written)), everything)
      restored.openForWrite(1)
      assertSame(contents(restored.table("default")), model)
      Seq(source, restored).foreach(_.close())
    }
  }

  test("a section that is too large stays as it is") {
    val before = new Array[Byte](HashOrder.MaxBytes + 100)
    new Random(1).nextBytes(before)
    val after = before.clone()
    ByteBuffer.wrap(after).putInt(8).putInt(8)
    val rows = HashOrder.MaxBytes / 16 + 1
    val layout = new SectionLayout(after, rows, sameKeys = true, sameValues = true, 0)
    val first = after.clone()
    assert(!new HashOrder().sort(after, layout, 8 + 16 * rows))
    assert(java.util.Arrays.equals(after, first))
  }
}
