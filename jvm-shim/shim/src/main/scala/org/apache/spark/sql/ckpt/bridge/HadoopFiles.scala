// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.bridge

import java.io.{ByteArrayOutputStream, EOFException, FileNotFoundException, IOException}
import java.util
import java.util.concurrent.ConcurrentHashMap
import java.util.function.Function

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{CreateFlag, FileAlreadyExistsException, FileContext, FileStatus, FileSystem}
import org.apache.hadoop.fs.{FSDataOutputStream, Path}
import org.apache.hadoop.fs.Options.{CreateOpts, Rename}
import org.apache.hadoop.fs.StreamCapabilities.HSYNC
import org.apache.hadoop.security.AccessControlException

import org.apache.spark.sql.ckpt.common.NewFiles
import org.apache.spark.sql.ckpt.protocol._

/**
 * Hadoop's file systems for the side process (docs/protocol.md, section 1.6): each request is one call of
 * `FileContext`, which, unlike `FileSystem`, has a rename that fails if the target exists. Calls come from any thread
 * and block.
 *
 * @param settings settings of the file system of a path, evaluated at the first use of each file system
 */
private[ckpt] final class HadoopFiles(settings: Function[Path, Configuration]) {
  import HadoopFiles._

  private val contexts = new ConcurrentHashMap[(String, String), FileContext]()
  private val fileSystems = new ConcurrentHashMap[(String, String), FileSystem]()
  private val unfinished = new ConcurrentHashMap[Path, FSDataOutputStream]()

  /** Content of unfinished files that are created exclusively, by the id of their upload. */
  private val uploads = new ConcurrentHashMap[String, ByteArrayOutputStream]()

  /** The reply to a request, `ok` or `error`. It does not throw. */
  def handle(request: Message): Message =
    try {
      answer(FileRequest.of(request))
    } catch {
      // A missing class, too: without an answer the side process waits forever.
      case e: Throwable => FileReply.failed(e, kindOf(e))
    }

  private def answer(request: FileRequest): Message = {
    val path = new Path(request.path)
    request match {
      case read: ReadFile => FileReply.bytes(bytesOf(path, read.offset, read.length))
      case write: WriteFile =>
        write.exclusive.fold(append(path, write))(append(path, write, _))
        FileReply.done
      case RenameFile(_, target, overwrite) =>
        context(path).rename(path, new Path(target), if (overwrite) Rename.OVERWRITE else Rename.NONE)
        FileReply.done
      case _: DeleteFile => FileReply.deleted(context(path).delete(path, false))
      case _: ListFiles =>
        val found = context(path).listStatus(path)
        FileReply.entries(Iterator.continually(found).takeWhile(_.hasNext).map(left => entryOf(left.next())))
      case _: DescribeFileSystem =>
        val fs = fileSystem(path)
        FileReply.fileSystem(fs.getClass.getName, NewFiles.canCreateConditionally(fs, path))
      case _: StatFile => entryOf(context(path).getFileStatus(path)).toMessage
    }
  }

  /**
   * Gives up the unfinished files of a side process that has ended, without waiting for their file systems.
   *
   * @return closes them
   */
  def abandon(): () => Unit = {
    uploads.clear()
    val left = unfinished.keySet().asScala.toSeq.flatMap(path => Option(unfinished.remove(path)))
    () => left.foreach(closeQuietly)
  }

  /** At most `length` bytes from `offset`, fewer at the end of the file. */
  private def bytesOf(path: Path, offset: Long, length: Int): Array[Byte] = {
    val in = context(path).open(path)
    try {
      in.seek(offset)
      in.readNBytes(length)
    } catch {
      case _: EOFException => Message.NoBytes // it ends before the offset
    } finally in.close()
  }

  /** Appends to a new file. The last bytes sync it, where the file system supports that. */
  private def append(path: Path, request: WriteFile): Unit =
    try {
      val out =
        if (request.isFirst) {
          context(path).create(path, util.EnumSet.of(CreateFlag.CREATE), CreateOpts.createParent())
        } else {
          Option(unfinished.get(path)).getOrElse(throw new IOException(s"the first part of $path is missing"))
        }
      unfinished.put(path, out)
      out.write(request.bytes)
      if (request.isLast) {
        if (out.hasCapability(HSYNC)) out.hsync()
        out.close()
        unfinished.remove(path)
      }
    } catch {
      case e: Throwable =>
        Option(unfinished.remove(path)).foreach(closeQuietly)
        throw e
    }

  /**
   * Appends to a file that appears with its last bytes, unless there is one. Until then its content is in memory: to
   * close the stream of a file that lacks its end would publish the rest.
   */
  private def append(path: Path, request: WriteFile, exclusive: ExclusiveWrite): Unit = {
    val content =
      if (request.isFirst) {
        new ByteArrayOutputStream
      } else {
        Option(uploads.remove(exclusive.upload)).getOrElse(throw new IOException(s"the first part of $path is missing"))
      }
    content.write(request.bytes)
    if (request.isLast) create(path, content, exclusive.isConditional) else uploads.put(exclusive.upload, content)
  }

  /** @throws FileAlreadyExistsException if there is a file, perhaps by a request of this call that was repeated */
  private def create(path: Path, content: ByteArrayOutputStream, isConditional: Boolean): Unit = {
    val fs = fileSystem(path)
    try {
      val out = if (isConditional) NewFiles.createExclusively(fs, path) else NewFiles.createAbsent(fs, path)
      content.writeTo(out) // if this fails, the stream stays open
      out.close()
    } catch {
      case e: IOException if fs.exists(path) => throw new FileAlreadyExistsException(path.toString).initCause(e)
    }
  }

  private def closeQuietly(out: FSDataOutputStream): Unit =
    try out.close() catch { case _: IOException => () }

  private def fileSystem(path: Path): FileSystem = {
    val uri = path.toUri
    fileSystems.computeIfAbsent((uri.getScheme, uri.getAuthority), _ => path.getFileSystem(settings.apply(path)))
  }

  private def context(path: Path): FileContext = {
    val uri = path.toUri
    contexts.computeIfAbsent(
      (uri.getScheme, uri.getAuthority), _ => FileContext.getFileContext(uri, impatient(settings.apply(path))))
  }
}

private object HadoopFiles {
  /**
   * First wait, in milliseconds, of the HDFS client for the NameNode to know the last block of a file. Each further
   * wait doubles.
   */
  private val BlockDelay = "dfs.client.block.write.locateFollowingBlock.initial.delay.ms"
  private val BlockRetries = "dfs.client.block.write.locateFollowingBlock.retries"

  /**
   * Settings that spare small files the 400 ms that closing takes by default: the NameNode usually learns of a block
   * within milliseconds. The total wait is unchanged, and so are the user's own settings.
   */
  private def impatient(settings: Configuration): Configuration = {
    val conf = new Configuration(settings)
    if (conf.getInt(BlockDelay, 400) == 400 && conf.getInt(BlockRetries, 5) == 5) {
      conf.setInt(BlockDelay, 10)
      conf.setInt(BlockRetries, 10)
    }
    conf
  }

  private def entryOf(status: FileStatus): FileEntry =
    FileEntry(status.getPath.getName, status.getLen, status.isDirectory, status.getModificationTime)

  private def kindOf(failure: Throwable): String = failure match {
    case _: FileNotFoundException => FileReply.Missing
    case _: FileAlreadyExistsException => FileReply.Exists
    case _: AccessControlException | _: java.nio.file.AccessDeniedException => FileReply.Denied
    case _ => FileReply.Other
  }
}
