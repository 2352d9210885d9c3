// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.files

import java.io.ByteArrayOutputStream
import java.nio.{ByteBuffer, ByteOrder}
import java.util.Base64
import java.util.zip.DeflaterOutputStream

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.ckpt.protocol.Message

class StoreSegmentsSuite extends AnyFunSuite {

  private def packed(column: Int*): String = {
    val ints = ByteBuffer.allocate(column.size * Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN)
    column.foreach(ints.putInt(_))
    val bytes = new ByteArrayOutputStream
    val out = new DeflaterOutputStream(bytes)
    out.write(ints.array)
    out.close()
    Base64.getEncoder.encodeToString(bytes.toByteArray)
  }

  /** Subtasks with 2, 0, 3 and 1 segments; after their counts come the columns that are not needed here. */
  private def store = Message.newHeader().put("parallelism", 4).put("segments", packed(2, 0, 3, 1, 7, 7, 7, 7, 7, 7))

  test("without shared handles each segment has its own") {
    assert(StoreSegments.handles(store, 0) == Seq(HandlePlace(0, 0), HandlePlace(0, 1)))
    assert(StoreSegments.handles(store, 1) == Nil)
    assert(StoreSegments.handles(store, 2) == Seq(HandlePlace(2, 0), HandlePlace(2, 1), HandlePlace(2, 2)))
    assert(StoreSegments.handles(store, 4) == Nil)
  }

  test("a shared handle is found with the subtask that has it") {
    val shared = store.put("shared", packed(0, 0, 2, 2, 0, 1))
    assert(StoreSegments.handles(shared, 0) == Seq(HandlePlace(0, 0), HandlePlace(0, 1)))
    assert(StoreSegments.handles(shared, 2) == Seq(HandlePlace(0, 0), HandlePlace(0, 1), HandlePlace(2, 0)))
    assert(StoreSegments.handles(shared, 3) == Seq(HandlePlace(2, 0)))
  }

  test("merged deltas have the changes of several versions") {
    val merged = store.put("merged", packed(0, 4, 0, 1, 0, 0))
    assert(StoreSegments.handles(merged, 0).map(_.covers) == Seq(1, 5))
    assert(StoreSegments.handles(merged, 2).map(_.covers) == Seq(1, 2, 1))
    assert(StoreSegments.handles(store, 2).map(_.covers) == Seq(1, 1, 1))
  }

  test("a field that expands without end is refused") {
    val bytes = new ByteArrayOutputStream
    val out = new DeflaterOutputStream(bytes)
    (0 until 65).foreach(_ => out.write(new Array[Byte](1 << 20)))
    out.close()
    val bomb = Message.newHeader().put("segments", Base64.getEncoder.encodeToString(bytes.toByteArray))
    assert(intercept[CheckpointFailure](StoreSegments.unpacked(bomb, "segments")).error == "MetadataFormatError")
  }
}
