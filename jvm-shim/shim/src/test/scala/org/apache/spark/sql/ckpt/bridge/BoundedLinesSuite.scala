/*
 * Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
 * the License. You may obtain a copy of the License at
 *
 *    http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on
 * an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
 * specific language governing permissions and limitations under the License.
 */
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
