// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.logs

import java.io.{FileNotFoundException, IOException}
import java.nio.file.{FileAlreadyExistsException => FileExists, Files, NoSuchFileException, Path => LocalPath}
import java.nio.file.StandardCopyOption.{ATOMIC_MOVE, REPLACE_EXISTING}
import java.nio.file.attribute.{PosixFilePermission, PosixFilePermissions}
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, FileStatus, FSDataInputStream, Path, PathFilter}
import org.apache.hadoop.fs.permission.FsPermission

import org.apache.spark.sql.ckpt.compat.ClosingFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

/**
 * Writer of Spark's logs on the local disk, by system calls. Without its native library, which PySpark lacks, Hadoop
 * starts `chmod` and `readlink` for each file: about 20 ms per entry, and there are three or more in a batch.
 *
 * Files are as Hadoop's `LocalFs` leaves them: the same permissions, and a checksum file beside each. A new entry gets
 * its name as a hard link, so of two drivers one loses, where Hadoop looks and then renames.
 *
 * @param sparks Spark's manager of the same location, for all that starts no processes
 */
private[ckpt] final class LocalLogFiles(override protected val sparks: CheckpointFileManager, conf: Configuration)
    extends CheckpointFileManager with ClosingFileManager {
  import LocalLogFiles._

  private val permissions =
    PosixFilePermissions.fromString(FsPermission.getFileDefault.applyUMask(FsPermission.getUMask(conf)).toString)

  override def createAtomic(path: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream =
    LocalEntryStream.create(local(path), overwriteIfPossible, permissions)

  override def open(path: Path): FSDataInputStream = sparks.open(path)

  override def list(path: Path, filter: PathFilter): Array[FileStatus] = sparks.list(path, filter)

  override def mkdirs(path: Path): Unit = if (!Files.isDirectory(local(path))) sparks.mkdirs(path)

  override def exists(path: Path): Boolean = Files.exists(local(path))

  override def delete(path: Path): Unit = sparks.delete(path)

  override def isLocal: Boolean = true

  override def createCheckpointDirectory(): Path = sparks.createCheckpointDirectory()
}

private[ckpt] object LocalLogFiles {

  /** A writer of its own where Spark's manager, which works through Hadoop's `FileContext`, is on the local disk. */
  def around(sparks: CheckpointFileManager, location: Path, conf: Configuration): CheckpointFileManager = {
    val scheme = location.toUri.getScheme
    if (sparks.isLocal && (scheme == null || scheme == "file")) new LocalLogFiles(sparks, conf) else sparks
  }

  private def local(path: Path): LocalPath = LocalPath.of(path.toUri.getPath)
}

/**
 * A file of a log that gets its name when it is closed. Until then, it is a temporary file with a name like Spark's
 * (`RenameBasedFSDataOutputStream`), which a rollback deletes.
 */
private final class LocalEntryStream(
    target: LocalPath,
    content: ChecksummedFile,
    overwrites: Boolean,
    permissions: java.util.Set[PosixFilePermission])
    extends CancellableFSDataOutputStream(content) {
  import LocalEntryStream._

  private var ended = false

  /**
   * @throws FileAlreadyExistsException if the file exists and is not to be overwritten
   * @throws FileNotFoundException      if the temporary file was deleted
   */
  override def close(): Unit = synchronized {
    if (!ended) {
      ended = true
      try {
        content.close()
        publish()
      } catch {
        case e: FileExists => throw new FileAlreadyExistsException(target.toString).initCause(e)
        case e: NoSuchFileException => throw new FileNotFoundException(e.getMessage).initCause(e)
      } finally content.delete()
    }
  }

  override def cancel(): Unit = synchronized {
    if (!ended) {
      ended = true
      content.delete()
    }
  }

  private def publish(): Unit = {
    permit(content.file)
    permit(content.checksums)
    val checksums = hidden(target, "crc")
    // Those of an earlier file of this name would not fit. Without any, readers check nothing.
    if (overwrites || !Files.exists(target)) Files.deleteIfExists(checksums)
    if (overwrites) Files.move(content.file, target, ATOMIC_MOVE, REPLACE_EXISTING)
    else moveExclusively(content.file, target)
    Files.move(content.checksums, checksums, ATOMIC_MOVE, REPLACE_EXISTING)
  }

  private def permit(file: LocalPath): Unit =
    try {
      Files.setPosixFilePermissions(file, permissions)
      ()
    } catch {
      case _: UnsupportedOperationException =>
    }
}

private object LocalEntryStream {

  /**
   * A new entry.
   *
   * @throws FileNotFoundException if there is no such directory
   */
  def create(
      target: LocalPath, overwrites: Boolean, permissions: java.util.Set[PosixFilePermission]): LocalEntryStream = {
    val temporary = hidden(target, s"${UUID.randomUUID()}.tmp")
    try new LocalEntryStream(
        target, new ChecksummedFile(temporary, hidden(temporary, "crc")), overwrites, permissions)
    catch { case e: NoSuchFileException => throw new FileNotFoundException(e.getMessage).initCause(e) }
  }

  /** Sibling of a file that Hadoop takes for a hidden one. */
  private def hidden(file: LocalPath, suffix: String): LocalPath =
    file.resolveSibling(s".${file.getFileName}.$suffix")

  /** @throws java.nio.file.FileAlreadyExistsException if there is such a file */
  private def moveExclusively(from: LocalPath, to: LocalPath): Unit = {
    val linked =
      try {
        Files.createLink(to, from)
        true
      } catch {
        // A mount that repeats a request whose answer got lost finds the link that it has made.
        case _: FileExists if Files.isSameFile(from, to) => true
        case e @ (_: FileExists | _: NoSuchFileException) => throw e
        case _: IOException | _: UnsupportedOperationException => false
      }
    // A file system without hard links gets what Hadoop does: a look, and a rename.
    if (!linked) Files.move(from, to)
  }
}
