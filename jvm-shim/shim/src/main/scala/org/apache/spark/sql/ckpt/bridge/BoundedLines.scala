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
