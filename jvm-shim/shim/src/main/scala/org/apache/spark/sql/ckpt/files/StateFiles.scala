// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.files

import java.io.{File, OutputStream}
import java.nio.channels.FileChannel
import java.nio.file.{Paths, StandardOpenOption}
import java.util.UUID

import scala.util.control.NonFatal

import io.github.sparkckpt.engine.segment.{ArrayByteSource, ByteSource}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, FSDataInputStream, LocalFileSystem, Path, RawLocalFileSystem}
import org.apache.hadoop.fs.Options.OpenFileOptions._
import org.apache.hadoop.fs.StreamCapabilities.HSYNC
import org.apache.hadoop.util.functional.FutureIO

import org.apache.spark.sql.ckpt.common.FormatDescription.SharedDirectory
import org.apache.spark.sql.ckpt.common.NewFiles
import org.apache.spark.sql.ckpt.protocol.{LocatedFile, SegmentRef}

/**
 * State files that executors write and read themselves: large deltas and bases. Each name is unique, so no file is
 * overwritten; a file under its name is complete.
 *
 * @param directory the job's `ckpt` directory
 * @param syncDirectory makes the names in a local directory durable
 */
private[ckpt] final class StateFiles(
    val directory: Path,
    hadoopConf: Configuration,
    syncDirectory: Path => Unit = StateFiles.syncDirectory) {

  // Hadoop's checksums of local files would add a second file for each of ours; our blocks have their own.
  private lazy val fs: FileSystem = directory.getFileSystem(hadoopConf) match {
    case local: LocalFileSystem => local.getRawFileSystem
    case other => other
  }

  /** True if requests take long. */
  lazy val isRemote: Boolean = directory.getFileSystem(hadoopConf).getScheme != "file"

  /** True on an object store, where a file appears on close; elsewhere a rename makes it appear. */
  private lazy val appearsWhenClosed: Boolean = NewFiles.appearWhenClosed(fs, directory)

  @volatile private var areDirectoriesSynced = false

  /**
   * Writes a file. A local one is durable on return: no record may name a file that a power loss removes.
   *
   * @param kind first part of the file name
   * @return its name relative to the `ckpt` directory
   */
  def write(kind: String)(body: OutputStream => Unit): String = {
    val name = s"$SharedDirectory/$kind-${UUID.randomUUID().toString.replace("-", "")}"
    val target = new Path(directory, name)
    val written = if (appearsWhenClosed) target else new Path(target.getParent, s".${target.getName}.tmp")
    try {
      val out = if (appearsWhenClosed) NewFiles.create(fs, written) else fs.create(written, false)
      try {
        body(out)
        if (!isRemote && out.hasCapability(HSYNC)) out.hsync()
      } finally out.close()
      if (!appearsWhenClosed && !fs.rename(written, target)) {
        throw new java.io.IOException(s"cannot rename $written to $target")
      }
      if (!isRemote) syncNames(target.getParent)
      name
    } catch {
      case e: Throwable =>
        try fs.delete(written, false) catch { case _: Exception => () }
        throw e
    }
  }

  /** Makes the name of a file durable and, with the first file, the names of its directories. */
  private def syncNames(parent: Path): Unit = {
    syncDirectory(parent)
    if (!areDirectoriesSynced) {
      syncDirectory(directory)
      syncDirectory(directory.getParent)
      areDirectoriesSynced = true
    }
  }

  def open(name: String): FSDataInputStream = fs.open(path(name))

  /**
   * Opens a file of known length, for reads of parts. An object store then answers to the reads alone.
   *
   * @throws java.io.FileNotFoundException if it is missing; on an object store, the first read throws it
   */
  def open(file: LocatedFile): FSDataInputStream =
    FutureIO.awaitFuture(fs.openFile(path(file.name))
      .opt(FS_OPTION_OPENFILE_READ_POLICY, FS_OPTION_OPENFILE_READ_POLICY_RANDOM)
      .optLong(FS_OPTION_OPENFILE_LENGTH, file.bytes)
      .build())

  /**
   * Opens a file of known length for reads of parts.
   *
   * @throws java.io.FileNotFoundException as [[open]]
   */
  def source(file: LocatedFile): ByteSource = {
    val name = path(file.name).toString
    if (fs.getClass == classOf[RawLocalFileSystem]) {
      new LocalByteSource(name, new File(path(file.name).toUri.getPath), file.bytes)
    } else {
      new HadoopByteSource(name, open(file), file.bytes)
    }
  }

  /** The bytes of a segment, as [[source]]. */
  def source(segment: SegmentRef): ByteSource = source(segment.file, segment.data)

  /** The same, of its file or its bytes. */
  def source(file: Option[LocatedFile], data: Array[Byte]): ByteSource =
    file.fold[ByteSource](new ArrayByteSource("state inside _metadata", data))(source)

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

  /** Deletes a file that no checkpoint refers to. If that fails, the next driver deletes it. */
  def delete(name: String): Unit = try fs.delete(path(name), false) catch { case NonFatal(_) => () }
}

private object StateFiles {
  private def syncDirectory(directory: Path): Unit = {
    val channel = FileChannel.open(Paths.get(directory.toUri.getPath), StandardOpenOption.READ)
    try channel.force(true) finally channel.close()
  }
}
