// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.common

import java.nio.file.{Files, Paths}

import scala.jdk.CollectionConverters._

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.protocol.Message

/** Detection of credentials, on the table that the tests in Python share. */
class RedactionSuite extends AnyFunSuite {
  private val table = Message.mapper.readTree(Files.readString(
    Iterator.iterate(Paths.get("").toAbsolutePath)(_.getParent)
      .map(_.resolve("tests/redaction.json")).find(Files.exists(_)).get))

  test("credentials are in no text, and in no failure") {
    val rows = table.path("hidden").elements().asScala.map(row => (row.get(0).asText(), row.get(1).asText())).toSeq
    assert(rows.nonEmpty)
    rows.foreach { case (text, expected) =>
      assert(Redaction.redacted(text) == expected)
      val failure = new CheckpointFailure("StorageError", text)
      assert(failure.reason == expected && failure.getMessage == s"[StorageError] $expected")
    }
  }

  test("what is no credential stays") {
    val kept = table.path("kept").elements().asScala.map(_.asText()).toSeq
    assert(kept.nonEmpty)
    kept.foreach(text => assert(Redaction.redacted(text) == text))
  }

  /** With a quadratic rule, one of these takes an hour. */
  test("a text that repeats anything a million times takes no longer than others") {
    val rows = table.path("long").elements().asScala.toSeq
    assert(rows.size > 5)
    rows.foreach { row =>
      val piece = row.get(1).asText()
      val middle = piece * (1000000 / piece.length)
      val expected = row.get(3).asText() + (if (row.get(4).isNull) "" else middle + row.get(4).asText())
      val isRight = Redaction.redacted(row.get(0).asText() + middle + row.get(2).asText()) == expected
      assert(isRight, row)
    }
  }
}
