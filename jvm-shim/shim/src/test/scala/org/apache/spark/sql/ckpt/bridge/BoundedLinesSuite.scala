// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.bridge

import java.io.StringReader

import org.scalatest.funsuite.AnyFunSuite

class BoundedLinesSuite extends AnyFunSuite {
  private def lines(text: String): Seq[String] = {
    val bounded = new BoundedLines(new StringReader(text), 10)
    Iterator.continually(bounded.next()).takeWhile(_ != null).toSeq
  }

  test("lines come without their ends, the last one also without any") {
    assert(lines("a\n\nb\r\nc") == Seq("a", "", "b", "c"))
    assert(lines("a\n") == Seq("a") && lines("").isEmpty)
  }

  test("the rest of a long line is left out") {
    assert(lines("0123456789\n01234567890\nx") == Seq("0123456789", "0123456789... (1 more characters)", "x"))
    assert(lines("x" * 1000000) == Seq("xxxxxxxxxx... (999990 more characters)"))
  }
}
