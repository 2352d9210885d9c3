// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.logs

import java.io.{ByteArrayOutputStream, IOException}

import scala.collection.mutable

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

class EndOffsetsOutputStreamSuite extends AnyFunSuite {

  /** What has happened, in order. */
  private val events = mutable.ArrayBuffer.empty[String]

  private class Entry(fails: Boolean) extends CancellableFSDataOutputStream(new ByteArrayOutputStream) {
    override def write(content: Array[Byte]): Unit =
      if (fails) throw new IOException("disk full") else super.write(content)
    override def cancel(): Unit = events += "cancelled"
    override def close(): Unit = events += s"put ${underlyingStream}"
  }

  private def stream(complete: String => Unit = _ => (), fails: Boolean = false): EndOffsetsOutputStream = {
    events.clear()
    new EndOffsetsOutputStream(
      text => {
        events += s"complete $text"
        complete(text)
      },
      () => {
        events += "begin"
        new Entry(fails)
      })
  }

  test("the checkpoint is complete before the entry begins") {
    val out = stream()
    out.write("v1".getBytes)
    assert(events.isEmpty)
    out.close()
    out.close()
    assert(events.toSeq == Seq("complete v1", "begin", "put v1"))
  }

  test("without a checkpoint there is no entry") {
    val out = stream(_ => throw new CheckpointFailure("FencedError", "another driver"))
    out.write("v1".getBytes)
    assert(intercept[CheckpointFailure](out.close()).error == "FencedError")
    out.cancel()
    out.close()
    assert(events.toSeq == Seq("complete v1"))
  }

  test("an entry that cannot be written is cancelled") {
    val out = stream(fails = true)
    out.write("v1".getBytes)
    intercept[IOException](out.close())
    assert(events.toSeq == Seq("complete v1", "begin", "cancelled"))
  }

  test("a cancelled entry completes no checkpoint") {
    val out = stream()
    out.write("v1".getBytes)
    out.cancel()
    out.close()
    assert(events.isEmpty)
  }
}
