// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.compaction

import java.io.{File, IOException}

/**
 * A failure of the temporary file that sorts a base snapshot. The snapshot is not written; the state is complete
 * without it.
 */
final class SortFileException(val file: File, val what: String, cause: Throwable)
  extends IOException(
    s"The temporary file $file, which sorts a base snapshot, $what. Check the disk, its free space, and what else " +
      "deletes files there",
    cause)
