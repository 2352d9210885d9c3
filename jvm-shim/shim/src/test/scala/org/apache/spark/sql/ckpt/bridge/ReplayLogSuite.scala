// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.bridge

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.protocol.Message

class ReplayLogSuite extends AnyFunSuite {
  private def message(id: Long, kind: String, job: String) = Numbered(id, Message(kind, job, "{}"))

  private def logOf(messages: Numbered*): ReplayLog = {
    val log = new ReplayLog
    messages.foreach(log.sent)
    log
  }

  test("the last trigger and the acks since are told again, in order, across jobs") {
    val log = logOf(
      message(1, "trigger", "a"), message(2, "ack", "a"), message(3, "trigger", "b"), message(4, "locate", "a"),
      message(5, "trigger", "a"), message(6, "ack", "a"), message(7, "ack", "b"), message(8, "task_failed", "a"))
    assert(log.messages.map(_.id) == Seq(3, 5, 6, 7, 8))
  }

  test("acks of a complete checkpoint are not told again, its trigger is") {
    val log = logOf(message(1, "trigger", "a"), message(2, "ack", "a"))
    log.completed("a")
    assert(log.messages.map(_.id) == Seq(1))
  }

  test("an ack that was answered with an error is not told again, those around it are") {
    val log = logOf(message(1, "trigger", "a"), message(2, "ack", "a"), message(3, "ack", "a"), message(4, "ack", "a"))
    log.failed(message(3, "ack", "a"))
    assert(log.messages.map(_.id) == Seq(1, 2, 4))
  }

  test("a closed job is forgotten") {
    val log = logOf(message(1, "trigger", "a"), message(2, "ack", "a"), message(3, "close", "a"))
    assert(log.messages.isEmpty)
  }
}
