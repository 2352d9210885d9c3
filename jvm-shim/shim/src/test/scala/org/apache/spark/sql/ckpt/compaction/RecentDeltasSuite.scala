// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compaction

import java.io.{ByteArrayOutputStream, File, IOException}

import io.github.sparkckpt.engine.segment.ByteSource
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.protocol.{Blocks, ReadyBase, ReadyMerge, SegmentRef}
import org.apache.spark.util.Utils

class RecentDeltasSuite extends AnyFunSuite {
  private def segment(firstVersion: Long, version: Long) =
    SegmentRef(firstVersion, version, new Blocks(Array.empty, Array.empty), 0)

  private def newDirectory(): File = Utils.createTempDir(namePrefix = "recent-deltas")

  private def wanted(directory: File): RecentDeltas = {
    val recent = new RecentDeltas(true, directory)
    recent.want()
    recent
  }

  private def contents(source: ByteSource): Seq[Byte] = {
    val bytes = new Array[Byte](source.length.toInt)
    try source.readFully(0, bytes, 0, bytes.length) finally source.close()
    bytes.toSeq
  }

  private def add(recent: RecentDeltas, first: Long, last: Long, bytes: Byte*): Unit =
    recent.add(first, last, bytes.length)(_.write(bytes.toArray))

  test("a copy is kept once merges were demanded, and only of a remote storage") {
    val directory = newDirectory()
    val recent = new RecentDeltas(true, directory)
    add(recent, 1, 1, 7)
    assert(recent.open(1, 1, 1).isEmpty)
    recent.want()
    add(recent, 2, 2, 7, 8)
    assert(recent.open(2, 2, 2).map(contents).contains(Seq[Byte](7, 8)))
    assert(recent.open(2, 2, 3).isEmpty && recent.open(1, 2, 2).isEmpty)
    val near = new RecentDeltas(false, directory)
    near.want()
    add(near, 3, 3, 9)
    assert(near.open(3, 3, 1).isEmpty && directory.list().length == 1)
  }

  test("copies go with the deltas that a base or a merge replaces, and with the state") {
    val directory = newDirectory()
    val recent = wanted(directory)
    (1 to 6).foreach(version => add(recent, version, version, version.toByte))
    recent.replaced(ReadyBase(segment(0, 2), "a"))
    assert(recent.open(2, 2, 1).isEmpty && recent.open(3, 3, 1).isDefined)
    add(recent, 3, 5, 35)
    recent.replaced(ReadyMerge(segment(3, 5), ""))
    assert(recent.open(4, 4, 1).isEmpty && recent.open(3, 5, 1).isDefined && recent.open(6, 6, 1).isDefined)
    assert(directory.list().length == 2)
    recent.clear()
    assert(recent.open(6, 6, 1).isEmpty && directory.list().isEmpty)
  }

  test("a stream is written, and copied if it is whole") {
    val directory = newDirectory()
    val recent = wanted(directory)
    val out = new ByteArrayOutputStream
    recent.tee(1, 3, 10, out)(_.write(Array[Byte](1, 2, 3)))
    assert(out.toByteArray.toSeq == Seq[Byte](1, 2, 3))
    assert(recent.open(1, 3, 3).map(contents).contains(Seq[Byte](1, 2, 3)))
    intercept[IOException](recent.tee(4, 5, 10, out) { to =>
      to.write(1)
      throw new IOException("no space")
    })
    assert(recent.open(4, 5, 1).isEmpty && directory.list().length == 1)
  }

  test("a copy that is being written while all are dropped is none") {
    val directory = newDirectory()
    val recent = wanted(directory)
    recent.tee(1, 3, 10, new ByteArrayOutputStream) { to =>
      to.write(Array[Byte](1, 2, 3))
      recent.clear()
    }
    recent.add(4, 4, 1) { to =>
      to.write(4)
      recent.clear()
    }
    assert(recent.open(1, 3, 3).isEmpty && recent.open(4, 4, 1).isEmpty && directory.list().isEmpty)
    add(recent, 4, 4, 7)
    assert(recent.open(4, 4, 1).map(contents).contains(Seq[Byte](7)))
  }

  test("a copy that cannot be written or read is no copy") {
    val gone = wanted(new File(newDirectory(), "missing"))
    add(gone, 1, 1, 7)
    assert(gone.open(1, 1, 1).isEmpty)
    val out = new ByteArrayOutputStream
    gone.tee(2, 3, 10, out)(_.write(1))
    assert(out.size() == 1 && gone.open(2, 3, 1).isEmpty)
    val directory = newDirectory()
    val recent = wanted(directory)
    add(recent, 1, 1, 7)
    directory.listFiles().foreach(_.delete())
    assert(recent.open(1, 1, 1).isEmpty)
  }

  test("without a directory for copies there are none, and nothing fails") {
    // Spark makes the directory with the first copy, and cannot on a full disk.
    var attempts = 0
    val recent = new RecentDeltas(
      true, {
        attempts += 1
        throw new IOException("No space left on device")
      })
    recent.want()
    add(recent, 1, 1, 7)
    val out = new ByteArrayOutputStream
    recent.tee(2, 3, 10, out)(_.write(1))
    assert(attempts == 2 && out.size() == 1)
    assert(recent.open(1, 1, 1).isEmpty && recent.open(2, 3, 1).isEmpty)
  }
}
