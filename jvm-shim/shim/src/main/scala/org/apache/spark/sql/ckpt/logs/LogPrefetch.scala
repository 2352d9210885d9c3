// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.logs

import java.io.{ByteArrayInputStream, EOFException, FileNotFoundException, IOException}
import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable
import scala.util.{Failure, Success}

import org.apache.hadoop.fs.{FileStatus, FileSystem, FSDataInputStream, FSInputStream, Path}
import org.apache.hadoop.util.functional.FutureIO

import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.common.BackgroundRequests

/**
 * Spark's own files of a checkpoint location as its query starts, read in parallel. Spark reads them one after another:
 * about a hundred requests, which take seconds on an object store.
 *
 * An answer is as old as the start, like a read of Spark's at that time. Whatever this driver changes afterwards is
 * asked for again. Entries of Spark's logs never change, and a new one is put only if there is none.
 */
private[ckpt] final class LogPrefetch private (fs: FileSystem, val location: Path) extends Logging {
  import LogPrefetch._

  private val startedAt = System.nanoTime()
  private val changed = ConcurrentHashMap.newKeySet[Path]()
  private val contents = new ConcurrentHashMap[Path, BackgroundRequests.Request[Array[Byte]]]()
  private val statuses = new ConcurrentHashMap[Path, BackgroundRequests.Request[Option[FileStatus]]]()
  private lazy val listings =
    Parts.map(part => new Path(location, part) -> BackgroundRequests.begin(listed(part))).toMap

  /** Status of a file or directory; Some(None) where there is none, None where that is not known. */
  def status(path: Path): Option[Option[FileStatus]] = listing(path).flatMap { listing =>
    listing.status(path).orElse(Option(statuses.get(path)).flatMap(resultOf))
  }

  /** Files and directories in a directory, if it has any. */
  def list(directory: Path): Option[Seq[FileStatus]] = listing(directory).flatMap(_.children(directory))

  /** Input of a file that was read ahead. */
  def open(path: Path): Option[FSDataInputStream] = for {
    _ <- listing(path)
    read <- Option(contents.get(path))
    content <- resultOf(read)
  } yield new FSDataInputStream(new BytesInputStream(content))

  /** Drops all answers about a path that this driver is about to change, and about the directories above it. */
  def forget(path: Path): Unit = above(path).foreach(changed.add)

  private def isFresh: Boolean = System.nanoTime() - startedAt < FreshNanos

  private def listing(path: Path): Option[LogListing] =
    if (changed.contains(path)) None else above(path).flatMap(listings.get).nextOption().flatMap(resultOf)

  private def above(path: Path): Iterator[Path] =
    Iterator.iterate(path)(_.getParent).takeWhile(above => above != null && above != location)

  private def listed(part: String): LogListing = {
    val root = new Path(location, part)
    val listing = new LogListing(root, filesBelow(root), isLog = part != "state")
    listing.readAtStart.foreach(file => contents.put(file.getPath, BackgroundRequests.begin(read(file))))
    listing.askedAtStart.foreach(path => statuses.put(path, BackgroundRequests.begin(statusOf(fs, path))))
    listing
  }

  private def filesBelow(root: Path): Seq[FileStatus] = {
    val found = mutable.ArrayBuffer.empty[FileStatus]
    val files = fs.listFiles(root, true)
    while (files.hasNext) {
      found += files.next()
      if (found.size > MaxFiles) throw new IOException(s"more than $MaxFiles files in $root")
    }
    found.toSeq
  }

  private def read(file: FileStatus): Array[Byte] = {
    val in = FutureIO.awaitFuture(fs.openFile(file.getPath).withFileStatus(file).build())
    try in.readAllBytes() finally in.close()
  }

  /** None after an error: Spark's own request then gives it to the user, or succeeds. */
  private def resultOf[T](request: BackgroundRequests.Request[T]): Option[T] = request.outcome() match {
    case Success(found) => Some(found)
    case Failure(e) =>
      logDebug(s"nothing read ahead below $location", e)
      None
  }
}

private[ckpt] object LogPrefetch {
  private val Commits = "commits"
  private val Parts = Seq("metadata", "offsets", Commits, "sources", "state")
  private val MaxFiles = 10000

  /** The start of a query takes less. Not a safeguard: nothing depends on it. */
  private val FreshNanos = 60L * 1000 * 1000 * 1000

  private val ofLocations = new ConcurrentHashMap[Path, LogPrefetch]()

  /** Status of a file or directory, by one question to its file system. */
  def statusOf(fs: FileSystem, path: Path): Option[FileStatus] =
    try Some(fs.getFileStatus(path))
    catch {
      case _: FileNotFoundException => None
    }

  /**
   * Begins to read the files of a location; those of an earlier start are forgotten. A run that writes meanwhile, and
   * because of which Spark refuses this start, tells the new answers of its changes.
   */
  def start(fs: FileSystem, location: Path): Unit = {
    val files = new LogPrefetch(fs, location)
    ofLocations.put(location, files)
    files.listings
    ()
  }

  /** This driver is about to change a path. With its first commit, the query has started. */
  def changing(path: Path): Unit = of(path).foreach { files =>
    if (path.getParent.getName == Commits) end(files.location) else files.forget(path)
  }

  /** Forgets the files of a location. */
  def end(location: Path): Unit = ofLocations.remove(location)

  /** The files of the location of a path, while its query starts. */
  def of(path: Path): Option[LogPrefetch] =
    if (ofLocations.isEmpty) None
    else {
      val above = Iterator.iterate(path)(_.getParent).takeWhile(_ != null)
      above.flatMap(location => Option(ofLocations.get(location))).nextOption().filter { found =>
        if (!found.isFresh) ofLocations.remove(found.location, found)
        found.isFresh
      }
    }
}

/** Input over the bytes of a file. */
private[ckpt] final class BytesInputStream(bytes: Array[Byte]) extends FSInputStream {
  private val in = new ByteArrayInputStream(bytes)

  override def read(): Int = in.read()

  override def read(into: Array[Byte], offset: Int, length: Int): Int = in.read(into, offset, length)

  override def available(): Int = in.available()

  override def getPos: Long = bytes.length - in.available()

  override def seek(position: Long): Unit = {
    if (position < 0 || position > bytes.length) throw new EOFException(s"position $position of ${bytes.length} bytes")
    in.reset()
    in.skip(position)
  }

  override def seekToNewSource(position: Long): Boolean = false
}
