package org.apache.spark.sql.ckpt.backend

import java.io.IOException

/**
 * A state stream that cannot be what was written.
 *
 * @param file name of the stream, a path where there is one
 * @param offset position in it where the error was seen, in bytes
 * @param what what is wrong there
 * @param cause of an error underneath, or null
 */
final class StateStreamCorruptException(
    val file: String,
    val offset: Long,
    val what: String,
    cause: Throwable)
  extends IOException(s"The state stream in $file is corrupt at byte $offset: $what", cause) {

  def this(file: String, offset: Long, what: String) = this(file, offset, what, null)
}
