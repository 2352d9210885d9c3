// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.protocol

import com.fasterxml.jackson.databind.node.ObjectNode

/** A request of the side process for a file that only the driver can reach (docs/protocol.md, section 1.6). */
private[ckpt] sealed trait FileRequest {

  /** The file or directory, as Hadoop writes it. */
  def path: String
}

/** Asks for at most `length` bytes from `offset`. */
private[ckpt] final case class ReadFile(path: String, offset: Long, length: Int) extends FileRequest

/**
 * Appends bytes to a new file.
 *
 * @param isFirst   creates the file
 * @param isLast    syncs and closes it
 * @param exclusive how the file appears, as a whole, unless there is one; None for a file that appears at once
 */
private[ckpt] final case class WriteFile(
    path: String,
    isFirst: Boolean,
    isLast: Boolean,
    bytes: Array[Byte],
    exclusive: Option[ExclusiveWrite] = None)
    extends FileRequest

/**
 * How a file is created exclusively.
 *
 * @param upload        id of the file's content, as long as it is not there
 * @param isConditional by a conditional create; otherwise by one that does not overwrite
 */
private[ckpt] final case class ExclusiveWrite(upload: String, isConditional: Boolean)

/** Asks what file system a path is on. */
private[ckpt] final case class DescribeFileSystem(path: String) extends FileRequest

/** Renames a file. */
private[ckpt] final case class RenameFile(path: String, target: String, overwrite: Boolean) extends FileRequest

/** Deletes a file or an empty directory. */
private[ckpt] final case class DeleteFile(path: String) extends FileRequest

/** Asks for the direct children of a directory. */
private[ckpt] final case class ListFiles(path: String) extends FileRequest

/** Asks for one entry. */
private[ckpt] final case class StatFile(path: String) extends FileRequest

private[ckpt] object FileRequest {
  private val Conditional = "conditional"

  /** @throws IllegalArgumentException if there is no such operation */
  def of(request: Message): FileRequest = {
    val header = request.json
    val path = header.path("path").asText()
    header.path("operation").asText() match {
      case "read" => ReadFile(path, header.path("offset").asLong(), header.path("length").asInt())
      case "write" =>
        val exclusive = Option(header.get("exclusive")).map { how =>
          ExclusiveWrite(header.path("upload").asText(), isConditional = how.asText() == Conditional)
        }
        WriteFile(path, header.path("first").asBoolean(), header.path("last").asBoolean(), request.payload, exclusive)
      case "rename" => RenameFile(path, header.path("target").asText(), header.path("overwrite").asBoolean())
      case "delete" => DeleteFile(path)
      case "list" => ListFiles(path)
      case "status" => StatFile(path)
      case "file_system" => DescribeFileSystem(path)
      case other => throw new IllegalArgumentException(s"unknown file operation '$other'")
    }
  }
}

/** A file or directory, in replies. */
private[ckpt] final case class FileEntry(name: String, size: Long, isDirectory: Boolean, modifiedMillis: Long) {
  private[protocol] def putInto(target: ObjectNode): ObjectNode =
    target.put("name", name).put("size", size).put("directory", isDirectory).put("modified_ms", modifiedMillis)

  /** The reply to [[StatFile]]. */
  def toMessage: Message = Message.reply(putInto(Message.newHeader()).toString)
}

/** The replies to [[FileRequest]]. */
private[ckpt] object FileReply {

  /** The reply to [[WriteFile]] and [[RenameFile]]. */
  val done: Message = Message.reply("{}")

  /** The reply to [[ReadFile]]. */
  def bytes(payload: Array[Byte]): Message = done.copy(payload = payload)

  /** The reply to [[DeleteFile]]: true if there was a file or an empty directory. */
  def deleted(existed: Boolean): Message =
    Message.reply(Message.newHeader().put("deleted", existed).toString)

  /** The reply to [[DescribeFileSystem]]: its class, and whether it creates files conditionally. */
  def fileSystem(className: String, isConditional: Boolean): Message =
    Message.reply(Message.newHeader().put("class", className).put("conditional_create", isConditional).toString)

  /** The reply to [[ListFiles]]. */
  def entries(files: Iterator[FileEntry]): Message = {
    val header = Message.newHeader()
    val target = header.putArray("files")
    files.foreach(_.putInto(target.addObject()))
    Message.reply(header.toString)
  }

  /**
   * The reply to a request that failed.
   *
   * @param kind one of the names in [[FileReply]]
   */
  def failed(cause: Throwable, kind: String): Message = {
    val header = Message.newHeader()
    header.put("error", cause.getClass.getName).put("message", String.valueOf(cause.getMessage)).put("kind", kind)
    Message(Message.Error, "", header.toString)
  }

  val Missing = "missing"
  val Exists = "exists"
  val Denied = "denied"
  val Other = "other"
}
