// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.common

import java.io.FileNotFoundException

import org.apache.hadoop.fs.{FileSystem, FSDataOutputStream, Path}
import org.apache.hadoop.util.functional.FutureIO

/** Files created once under a name, which appear when they are closed, as on S3: one request each. */
private[ckpt] object NewFiles {

  /** True if a file appears only on close, and never if its stream is aborted. */
  def appearWhenClosed(fs: FileSystem, path: Path): Boolean =
    fs.hasPathCapability(path, "fs.capability.outputstream.abortable")

  /** A file with a unique name: the connector skips the check for an existing one. */
  def create(fs: FileSystem, path: Path): FSDataOutputStream =
    fs.createFile(path).recursive().overwrite(true).opt("fs.s3a.create.performance", true).build()

  /**
   * True if the file system can create a file on the condition that there is none (Hadoop 3.4.2,
   * `Options.CreateFileOptionKeys`), and is not told to do without.
   */
  def canCreateConditionally(fs: FileSystem, path: Path): Boolean = fs.hasPathCapability(path, ConditionalOverwrite)

  /**
   * A new file; closing it fails if one exists by then.
   *
   * @throws IllegalArgumentException if the file system cannot promise that
   */
  def createExclusively(fs: FileSystem, path: Path): FSDataOutputStream =
    fs.createFile(path).recursive().overwrite(true)
      .opt("fs.s3a.create.performance", true)
      .must(ConditionalOverwrite, true)
      .build()

  /** A new file on a file system whose own "do not overwrite" is exclusive, as of Google's connector. */
  def createAbsent(fs: FileSystem, path: Path): FSDataOutputStream =
    fs.createFile(path).recursive().overwrite(false).build()

  /**
   * True if there is such a file, by a read of its first byte. On S3, that is one request; `exists` takes a second one,
   * a listing, to find that there is none.
   */
  def isThere(fs: FileSystem, path: Path): Boolean =
    try {
      // With a length, S3A does not look for the file before it reads.
      val in = FutureIO.awaitFuture(fs.openFile(path).opt(KnownLength, "1").build())
      try in.read() finally in.close()
      true
    } catch {
      case _: FileNotFoundException => false
    }

  private val KnownLength = "fs.option.openfile.length"

  private val ConditionalOverwrite = "fs.option.create.conditional.overwrite"
}
