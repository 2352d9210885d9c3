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
package org.apache.spark.sql.ckpt.executor

import org.apache.hadoop.fs.{FileSystem, FSDataOutputStream, Path}

/** Files created once under a name, which appear when they are closed, as on S3: one request each. */
private[ckpt] object NewFiles {

  /** True if a file appears only on close, and never if its stream is aborted. */
  def appearWhenClosed(fs: FileSystem, path: Path): Boolean =
    fs.hasPathCapability(path, "fs.capability.outputstream.abortable")

  /** A file with a unique name: the connector skips the check for an existing one. */
  def create(fs: FileSystem, path: Path): FSDataOutputStream =
    fs.createFile(path).recursive().overwrite(true).opt("fs.s3a.create.performance", true).build()

  /** A new file; closing it fails if one exists by then (Hadoop 3.5, `Options.CreateFileOptionKeys`). */
  def createExclusively(fs: FileSystem, path: Path): FSDataOutputStream =
    fs.createFile(path).recursive().overwrite(true)
      .opt("fs.s3a.create.performance", true)
      .opt("fs.option.create.conditional.overwrite", true)
      .build()
}
