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

import java.io.OutputStream
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, FSDataInputStream, LocalFileSystem, Path}

/**
 * State files that executors write and read themselves: large deltas and bases. Every name is new, so nothing is ever
 * overwritten; a file that exists under its name is whole.
 *
 * @param directory the job's `ckpt` directory
 */
private[ckpt] final class StateFiles(val directory: Path, hadoopConf: Configuration) {

  // Hadoop's checksums of local files would leave a second file beside each of ours; our blocks carry their own.
  private lazy val fs: FileSystem = directory.getFileSystem(hadoopConf) match {
    case local: LocalFileSystem => local.getRawFileSystem
    case other => other
  }

  /** Whether a request takes long. */
  lazy val isRemote: Boolean = directory.getFileSystem(hadoopConf).getScheme != "file"

  /** On an object store a file appears when it is closed; elsewhere it appears by a rename. */
  private lazy val appearsWhenClosed: Boolean = NewFiles.appearWhenClosed(fs, directory)

  /**
   * Writes a file.
   *
   * @param kind the first part of its name
   * @return its name relative to the `ckpt` directory
   */
  def write(kind: String)(body: OutputStream => Unit): String = {
    val name = s"shared/$kind-${UUID.randomUUID().toString.replace("-", "")}"
    val target = new Path(directory, name)
    val written = if (appearsWhenClosed) target else new Path(target.getParent, s".${target.getName}.tmp")
    try {
      val out = if (appearsWhenClosed) NewFiles.create(fs, written) else fs.create(written, false)
      try body(out) finally out.close()
      if (!appearsWhenClosed && !fs.rename(written, target)) {
        throw new java.io.IOException(s"cannot rename $written to $target")
      }
      name
    } catch {
      case e: Throwable =>
        try fs.delete(written, false) catch { case _: Exception => () }
        throw e
    }
  }

  def open(name: String): FSDataInputStream = fs.open(path(name))

  def exists(name: String): Boolean = fs.exists(path(name))

  /** Names of the files in a directory. */
  def list(directory: String): Seq[String] = fs.listStatus(path(directory)).toSeq.map(_.getPath.getName)

  def readFully(name: String): Array[Byte] = {
    val in = open(name)
    try in.readAllBytes() finally in.close()
  }

  /** Length of a file in bytes. */
  def length(name: String): Long = fs.getFileStatus(path(name)).getLen

  def path(name: String): Path = new Path(directory, name)

  def makeDirectory(path: Path): Unit = fs.mkdirs(path)

  /** Forgets a file that no checkpoint refers to. */
  def delete(name: String): Unit =
    try fs.delete(path(name), false) catch { case _: java.io.IOException => () }
}
