// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt

import java.io.{FileNotFoundException, IOException}
import java.nio.charset.StandardCharsets.UTF_8

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, FileStatus, FileSystem, FSDataInputStream, Path, PathFilter}
import org.apache.hadoop.util.VersionInfo
import org.apache.hadoop.util.functional.FutureIO

import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.common.{CheckpointFailure, NewFiles, BackgroundRequests}
import org.apache.spark.sql.ckpt.compat.ClosingFileManager
import org.apache.spark.sql.ckpt.driver.CheckpointDriver
import org.apache.spark.sql.ckpt.logs._
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.internal.SQLConf

/**
 * Writer of Spark's own logs (`offsets`, `commits`, `sources`): one conditional put per entry, on storages where a file
 * appears when it is closed. Spark's default, a temporary file and a rename, takes about twenty requests on an object
 * store. Its rename is a lookup and a copy, so two drivers can both write. Reads take fewer requests too. On the local
 * disk, [[LocalLogFiles]] spares the processes that Hadoop starts. On other storages, and where Hadoop has no
 * conditional put, Spark's default stays. On all of them, [[LogFence]] stops a driver whose query was rolled back.
 *
 * In real-time mode the entry of the offset log is the last word on a batch: its checkpoint completes first.
 *
 * Set with `spark.sql.streaming.checkpointFileManagerClass`, which requires this constructor.
 */
class CheckpointLogFileManager(log: Path, hadoopConf: Configuration) extends CheckpointFileManager
    with ClosingFileManager with FencedLog with Logging {
  import CheckpointLogFileManager._

  override protected lazy val sparks: CheckpointFileManager = {
    val conf = new Configuration(hadoopConf)
    conf.unset(SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key)
    LocalLogFiles.around(CheckpointFileManager.create(log, conf), log, conf)
  }

  /** Each log of a run has a manager of its own. */
  private val fence = LogFence.ofLog(log)

  /** The fence of its run, which entries of a source do not need. */
  private val fenceOfRun = fence.orElse(LogFence.ofSource(log))

  private lazy val fs = log.getFileSystem(hadoopConf)

  private lazy val appearsWhenClosed = !isLocal && NewFiles.appearWhenClosed(fs, log)

  private lazy val putsExclusively = appearsWhenClosed && NewFiles.canCreateConditionally(fs, log)

  override def createAtomic(path: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream = {
    LogPrefetch.changing(path)
    CheckpointDriver.beforeCommit(path, textOf)
    CheckpointDriver.beforeBatch(path)
    atStart = None
    CheckpointDriver.beforeOffsets(path) match {
      case Some(complete) => new EndOffsetsOutputStream(complete, () => put(path, overwriteIfPossible))
      case None => put(path, overwriteIfPossible)
    }
  }

  override def logEpoch: Option[Long] = fence.map(_.epoch)

  private def textOf(path: Path): Option[String] =
    try {
      val in = sparks.open(path)
      try Some(new String(in.readAllBytes(), UTF_8)) finally in.close()
    } catch {
      case _: FileNotFoundException => None
    }

  /** The fence of an entry of a fenced log. */
  private def fenceOf(path: Path): Option[LogFence] = fence.filter(_ => path.getName.toLongOption.isDefined)

  private def put(path: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream =
    if (putsExclusively && !overwriteIfPossible) {
      fenceOf(path).foreach(_.check(isThere, LogFence.FreshNanos))
      val buffer = new EntryBuffer(MaxPut, () => renamed(path, overwriteIfPossible))
      new ExclusiveOutputStream(fs, path, buffer, hasPut(path, _))
    } else {
      renamed(path, overwriteIfPossible)
    }

  private def renamed(path: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream = {
    own.clear()
    listing.clear()
    // The look comes after the temporary file, which a rollback deletes after its marker: one of the two stops us.
    val out = sparks.createAtomic(path, overwriteIfPossible)
    try fenceOf(path).foreach(_.check(isThere, 0))
    catch {
      case e: Throwable =>
        out.cancel()
        throw e
    }
    out
  }

  /** What the thread asked for last. Spark asks whether an entry exists before it opens it, for each entry. */
  private val lastFound = new ThreadLocal[(Path, FileStatus)]

  private val own = new OwnEntries

  private val listing = new OwnListing(log, () => System.currentTimeMillis())

  private def hasPut(entry: Path, content: Array[Byte]): Unit = {
    own.put(entry, content)
    listing.put(entry, content.length)
  }

  private lazy val purge = if (fenceOfRun.isDefined && putsExclusively) Some(new LogPurge(fs, log)) else None

  /** Entries of the offset log, until the run adds one. */
  @volatile private var atStart = fence.filter(_ => log.getName == OffsetLog).map(_ => new OffsetsAtStart)

  override def open(path: Path): FSDataInputStream = {
    val in = openEntry(path)
    (atStart, path.getName.toLongOption) match {
      case (Some(offsets), Some(batchId)) if path.getParent == log =>
        val content = try offsets.content(batchId, in.readAllBytes()) finally in.close()
        new FSDataInputStream(new BytesInputStream(content))
      case _ => in
    }
  }

  /** On an object store, one request instead of two for an entry that the thread has just found; none for its own. */
  private def openEntry(path: Path): FSDataInputStream = {
    val found = lastFound.get()
    lastFound.remove()
    if (isPurged(path)) throw new FileNotFoundException(path.toString)
    val put = own.content(path).map(content => new FSDataInputStream(new BytesInputStream(content)))
    put.orElse(LogPrefetch.of(path).flatMap(_.open(path))).getOrElse {
      if (found != null && found._1 == path) FutureIO.awaitFuture(fs.openFile(path).withFileStatus(found._2).build())
      else sparks.open(path)
    }
  }

  override def list(path: Path, filter: PathFilter): Array[FileStatus] =
    LogPrefetch.of(path).flatMap(_.list(path)) match {
      case Some(known) => known.filter(file => filter.accept(file.getPath)).toArray
      case None if path == log && purge.isDefined && own.isWriting =>
        listing.files(sparks.list(path, !isPurged(_)).toSeq).filter(file => filter.accept(file.getPath)).toArray
      case None => sparks.list(path, file => filter.accept(file) && !isPurged(file))
    }

  override def mkdirs(path: Path): Unit =
    if (!knownStatus(path).flatten.exists(_.isDirectory)) {
      LogPrefetch.changing(path)
      sparks.mkdirs(path)
    }

  override def exists(path: Path): Boolean =
    if (own.content(path).isDefined) {
      true
    } else if (own.isNext(path) || isPurged(path)) {
      false
    } else if (appearsWhenClosed) {
      val status = knownStatus(path).getOrElse(LogPrefetch.statusOf(fs, path))
      status.fold(lastFound.remove())(found => lastFound.set((path, found)))
      status.isDefined
    } else {
      sparks.exists(path)
    }

  private def isPurged(path: Path): Boolean = purge.exists(_.isWaiting(path))

  private def isThere(path: Path): Boolean = if (appearsWhenClosed) NewFiles.isThere(fs, path) else sparks.exists(path)

  private def knownStatus(path: Path): Option[Option[FileStatus]] = LogPrefetch.of(path).flatMap(_.status(path))

  override def delete(path: Path): Unit = {
    LogPrefetch.changing(path)
    own.deleted(path)
    listing.deleted(path)
    purge.filter(_ => own.isEarlier(path)) match {
      case Some(purge) => purge.delete(path)(fenceOfRun.foreach(_.check(isThere, 0)))
      case None => sparks.delete(path)
    }
  }

  override def isLocal: Boolean = sparks.isLocal

  /**
   * The first call of Spark for the location of a starting query; readers of a location do not make it. All writes of a
   * start come later, so this is the place to refuse a savepoint, and to make the fence of the run's logs.
   *
   * @throws CheckpointFailure if the location is a savepoint
   */
  override def createCheckpointDirectory(): Path = {
    // On an object store, each takes two or three requests.
    val savepoint = BackgroundRequests.beginIf(appearsWhenClosed)(isSavepoint)
    val look = BackgroundRequests.beginIf(appearsWhenClosed)(LogFence.look(log, sparks))
    if (savepoint.result()) throw onSavepoint(log)
    val location = sparks.createCheckpointDirectory()
    LogFence.start(location, look.result())
    if (appearsWhenClosed && !putsExclusively) logWarning(withoutCondition(location))
    if (appearsWhenClosed) LogPrefetch.start(fs, location)
    location
  }

  private def isSavepoint: Boolean = sparks.exists(new Path(log, SavepointRecord))
}

private object CheckpointLogFileManager {

  private val OffsetLog = "offsets"

  /** File that distinguishes a savepoint from a checkpoint location (docs/protocol.md, section 5). */
  private val SavepointRecord = "savepoint.json"

  /** Bytes of the longest entry that is put as a whole. */
  private[ckpt] val MaxPut = 4 << 20

  private[ckpt] def withoutCondition(location: Path): String =
    s"$location: Spark's own file manager writes the query's logs, as this file system creates no file on the " +
      s"condition that there is none (Hadoop ${VersionInfo.getVersion}; S3A does since 3.4.2, unless " +
      "fs.s3a.create.conditional.enabled is false). An entry takes more requests, and two drivers that run at the " +
      "same time can both write one. The fence of checkpoints works all the same"

  private def onSavepoint(location: Path): CheckpointFailure = new CheckpointFailure("SavepointLocationError",
    s"$location is a savepoint, and no query runs on one: 'spark-ckpt restore $location NEW_LOCATION' makes a " +
      "checkpoint location of it. Start the query with that one. The savepoint was not changed")
}

/**
 * A small file, put as a whole on close unless one exists.
 *
 * @param buffer  its content, which streams elsewhere if it is not small
 * @param whenPut called with the content once the file is there
 */
private[ckpt] final class ExclusiveOutputStream(
    fs: FileSystem,
    path: Path,
    buffer: EntryBuffer,
    whenPut: Array[Byte] => Unit)
    extends BufferedEntryStream(buffer) {

  /** @throws FileAlreadyExistsException if another driver was first */
  override protected def put(content: Array[Byte]): Unit = {
    try {
      val out = NewFiles.createExclusively(fs, path)
      try out.write(content) finally out.close()
    } catch {
      case e: IOException =>
        read(content.length + 1) match {
          case Some(there) if java.util.Arrays.equals(there, content) =>
          // The put was retried after a lost answer and found its own file.
          case Some(_) =>
            val taken = new FileAlreadyExistsException(path.toString)
            taken.initCause(e)
            throw taken
          case None => throw e
        }
    }
    whenPut(content)
  }

  private def read(length: Int): Option[Array[Byte]] =
    try {
      val in = fs.open(path)
      try Some(in.readNBytes(length)) finally in.close()
    } catch {
      case NonFatal(_) => None
    }
}
