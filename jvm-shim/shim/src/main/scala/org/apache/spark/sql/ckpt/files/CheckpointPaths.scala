// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.files

import org.apache.spark.sql.ckpt.common.{CheckpointFailure, FormatDescription}

/** Rule for paths in files: those that spark-ckpt writes. `spark_ckpt.storage.paths` applies the same patterns. */
private[ckpt] object CheckpointPaths {
  import FormatDescription.{MetadataFile, OutOfCheckpoint, StateFile}

  /** True if this is the path of a state file, relative to the `ckpt` directory. */
  def isState(path: String): Boolean = StateFile.matches(path)

  /** True if this is the path of a `_metadata` in a record. */
  def isMetadata(path: String): Boolean = MetadataFile.matches(path)

  /**
   * The path of a state file relative to the `ckpt` directory, from its form in a `_metadata`: `../shared/<name>`.
   *
   * @return None for any other form
   */
  def stateOf(path: String): Option[String] =
    Option.when(path.startsWith(OutOfCheckpoint))(path.stripPrefix(OutOfCheckpoint)).filter(isState)

  /** @param file file that contains the path */
  def refused(path: String, file: String): CheckpointFailure = new CheckpointFailure("PathEscapeError",
    s"the path '$path' is not one that spark-ckpt writes: spark-ckpt did not write $file, which names it")
}
