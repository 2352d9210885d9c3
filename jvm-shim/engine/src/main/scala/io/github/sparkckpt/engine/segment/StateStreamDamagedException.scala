// SPDX-License-Identifier: Apache-2.0
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
