// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.bridge

import java.io.Reader

/**
 * Lines of a text. The rest of a line above a limit is left out, so that no line takes more memory.
 *
 * @param text  a buffered text
 * @param limit most characters of a line
 */
private[bridge] final class BoundedLines(text: Reader, limit: Int) {

  /** The next line without its end; null after the last one. */
  def next(): String = {
    val line = new java.lang.StringBuilder
    var left = 0L
    var c = text.read()
    val ended = c < 0
    while (c >= 0 && c != '\n') {
      if (line.length < limit) line.append(c.toChar) else left += 1
      c = text.read()
    }
    if (ended) null
    else if (left > 0) line.append(s"... ($left more characters)").toString
    else line.toString.stripSuffix("\r")
  }
}
