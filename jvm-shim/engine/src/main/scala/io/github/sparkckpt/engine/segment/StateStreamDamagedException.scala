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
package io.github.sparkckpt.engine.segment

import java.io.IOException

/**
 * A state stream that differs from anything that is written.
 *
 * @param file name of the stream, a path where there is one
 * @param offset position of the error in bytes
 * @param what description of the error
 * @param cause underlying error, or null
 */
final class StateStreamDamagedException(
    val file: String,
    val offset: Long,
    val what: String,
    cause: Throwable)
  extends IOException(s"The state stream in $file is damaged at byte $offset: $what", cause) {

  def this(file: String, offset: Long, what: String) = this(file, offset, what, null)
}
