// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

/**
 * Evicted state that cannot be written to a local disk or read from it. Checkpoints are untouched: the state is loaded
 * again from them.
 *
 * @param file  path of the local file
 * @param what  description of the error
 * @param cause underlying error, or null
 */
final class LocalStateException(val file: String, val what: String, cause: Throwable)
  extends RuntimeException(
    s"State on the local disk is lost, in $file: $what. Spark retries the task, which loads the state again from its " +
      "checkpoint. Check the disk, its free space, and what else deletes files there",
    cause) {

  def this(file: String, what: String) = this(file, what, null)
}
