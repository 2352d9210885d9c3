// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.buffer

import io.github.sparkckpt.engine.bytes.EntryCursor
import io.github.sparkckpt.engine.support.BackendTesting
import org.scalatest.funsuite.AnyFunSuite

class WriteLogSuite extends AnyFunSuite with BackendTesting {
  private def put(log: WriteLog, entry: Int, value: Long): Unit = log.put(entry, longs(value), Start, 8)

  private def append(log: WriteLog, entry: Int, value: Long): Unit = log.append(entry, longs(value), Start, 8)

  /** Entry and value of each write, and its round. */
  private def written(log: WriteLog): Seq[(Int, Option[Long], Int)] = {
    val cursor = new EntryCursor
    (0 until log.count).map { write =>
      log.pointValue(write, cursor)
      val value =
        if (cursor.valueLength < 0) None
        else Some(java.nio.ByteBuffer.wrap(bytes(cursor.valueBase, cursor.valueOffset, cursor.valueLength)).getLong)
      (log.entry(write), value, log.round(write))
    }
  }

  test("a key's writes are in one round as long as they are of one kind, whatever other keys do") {
    val log = new WriteLog
    put(log, 0, 1)
    append(log, 9, 2)
    put(log, 0, 3)
    append(log, 0, 4)
    log.remove(9)
    log.remove(0)
    append(log, 0, 5)
    append(log, 9, 6)
    assert(written(log) == Seq(
      (0, Some(1), 0), (9, Some(2), 1), (0, Some(3), 0), (0, Some(4), 1), (9, None, 2), (0, None, 2), (0, Some(5), 3),
      (9, Some(6), 3)))
    assert(log.rounds == 4)
  }

  test("a log that was reset is as good as new, and gives its memory back") {
    val log = new WriteLog
    val idle = log.memoryBytes
    for (i <- 0 until 5000) append(log, i % 7, i)
    log.remove(3)
    assert(log.memoryBytes > 5000 * 8)
    log.reset()
    assert(log.count == 0 && log.rounds == 0)
    append(log, 3, 1)
    assert(written(log) == Seq((3, Some(1), 1)))
    log.reset()
    assert(log.memoryBytes == idle)
  }
}
