// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

import java.nio.ByteBuffer
import java.nio.file.Files

import io.github.sparkckpt.engine.compaction.BaseWriter
import io.github.sparkckpt.engine.segment._
import io.github.sparkckpt.engine.support.BackendTesting
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.Outcome

/** Rows as large as a block can hold, with blocks of 1 MiB in the place of those of 1 GiB. */
class RowLimitSuite extends AnyFunSuite with BackendTesting {
  private val K = 4
  private val Block = 1 << 20
  private lazy val most = SegmentFormat.maxRowBytes.toInt

  override def withFixture(test: NoArgTest): Outcome = {
    SegmentFormat.maxBlockBytes = Block
    try super.withFixture(test) finally SegmentFormat.maxBlockBytes = SegmentFormat.MaxBlockBytes
  }

  private def opened(lists: Boolean): HashMapStateBackend = {
    val backend = newBackend(K)
    backend.declareFamily("default", groupsByHash(K), multiValue = lists)
    backend
  }

  private def append(f: HashMapTable, key: Array[Byte], row: Int): Unit =
    f.append(key, Start, key.length, new Array[Byte](row), Start, row)

  private def refused(write: => Unit): Unit = {
    val failure = intercept[StateTooLargeException](write)
    assert(failure.getMessage.contains(s"at most $most are possible"))
  }

  /** The state after the batch from its delta, and from a base: each fits into blocks. */
  private def checkFiles(backend: HashMapStateBackend, before: Option[SegmentBytes], lists: Boolean): SegmentBytes = {
    val version = backend.foldedVersion + 1
    backend.commit()
    val delta = backend.deltaBytes()
    backend.fold()
    val whole = base(backend)
    val chains = Seq(
      Seq(segment(isBase = true, whole)),
      before.map(segment(isBase = true, _)).toSeq :+ segment(isBase = false, delta))
    chains.foreach { chain =>
      val other = opened(lists)
      other.restore(version, 0, chain, everything)
      assertSame(contents(other.reader("default", version)), contents(backend.reader("default", version)))
      other.close()
    }
    whole
  }

  test("a value that just fits into a block is kept in each kind of file, and one byte more is refused when written") {
    val backend = opened(lists = false)
    backend.openForWrite(0)
    val f = backend.table("default")
    put(f, longs(1), new Array[Byte](most - 8))
    refused(put(f, longs(2), new Array[Byte](most - 7)))
    refused(put(f, new Array[Byte](most + 8 & -8), longs(1)))
    put(f, longs(3), longs(3))
    checkFiles(backend, None, lists = false)
    backend.openForWrite(1)
    assert(get(backend.table("default"), longs(1)).length == most - 8)
    assert(get(backend.table("default"), longs(2)) == null)
    backend.close()
  }

  /** A list of rows of 1000 bytes that has room for less than one more. */
  private val Rows = 900

  private def fill(f: HashMapTable, rows: Int, key: Array[Byte] = longs(1)): Unit =
    (0 until rows).foreach(_ => append(f, key, 1000))

  /** Fills up the list, and tries one more row. */
  private def complete(f: HashMapTable, key: Array[Byte] = longs(1)): Unit = {
    fill(f, (most - 8) / 1004 - Rows, key)
    refused(append(f, key, 1000))
    refused(append(f, key, most))
  }

  test("a list that a batch writes grows up to the limit") {
    val backend = opened(lists = true)
    backend.openForWrite(0)
    val f = backend.table("default")
    fill(f, Rows)
    complete(f)
    f.startList()
    refused((0 to most / 1004).foreach(_ => f.addToList(new Array[Byte](1000), Start, 1000)))
    checkFiles(backend, None, lists = true)
    backend.close()
  }

  for (isRead <- Seq(false, true)) {
    test(s"a list of the table grows up to the limit, batch by batch; read before: $isRead") {
      val backend = opened(lists = true)
      backend.openForWrite(0)
      fill(backend.table("default"), Rows / 3)
      val first = checkFiles(backend, None, lists = true)
      backend.openForWrite(1)
      fill(backend.table("default"), Rows / 3)
      val second = checkFiles(backend, Some(first), lists = true)
      backend.openForWrite(2)
      val f = backend.table("default")
      fill(f, Rows / 3)
      if (isRead) assert(get(f, longs(1)).length == 4 + Rows * 1004)
      complete(f)
      checkFiles(backend, Some(second), lists = true)
      val found = contents(backend.reader("default", 3)).get(ByteBuffer.wrap(longs(1)))
      assert(found.remaining == 4 + (most - 8) / 1004 * 1004)
      backend.close()
    }
  }

  test("an import writes a list up to the limit") {
    val writer = new BaseWriter(K, 1 << 16, BlockCodec.Uncompressed, () =>
      Files.createTempDirectory("row-limit").resolve("sorted").toFile)
    writer.startFamily("default", multiValue = true)
    val row = new Array[Byte](1000)
    (0 until (most - 8) / 1004).foreach(_ => writer.add(1, longs(1), Start, 8, row, Start, row.length))
    val out = new SegmentBuffer(Block)
    val info = writer.write(1, out)
    writer.close()
    val backend = opened(lists = true)
    backend.restore(1, 0, Seq(segment(isBase = true, SegmentBytes(info, out.toArray))), everything)
    backend.openForWrite(1)
    assert(get(backend.table("default"), longs(1)).length == 4 + (most - 8) / 1004 * 1004)
    backend.close()
  }
}
