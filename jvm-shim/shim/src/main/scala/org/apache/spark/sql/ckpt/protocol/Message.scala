// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.protocol

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.ckpt.common.CheckpointFailure

/**
 * A request or a reply between executors, the driver's endpoint and the Python side process (docs/protocol.md, section
 * 1).
 *
 * @param kind    the request; in replies `ok`, `error` or, to a task, `again`; `notify` for unsolicited messages;
 *                `report` for reports of checkpoints; `file` for requests of the side process
 * @param job     run id of the query, or `standalone:<directory>`; empty in replies, and if it is about no job
 * @param header  the small fields, a JSON object
 * @param index   key groups and offsets, fixed-width little-endian integers
 * @param payload state bytes
 */
private[ckpt] final case class Message(
    kind: String,
    job: String,
    header: String,
    index: Array[Byte] = Message.NoBytes,
    payload: Array[Byte] = Message.NoBytes) {

  /** The message as it crosses Spark's RPC: types known to every class loader. */
  def toTuple: Message.Tuple = (kind, job, header, index, payload)

  def json: JsonNode = Message.mapper.readTree(header)

  def isError: Boolean = kind == Message.Error

  /** This message, unless it is an error reply: then the error is thrown. */
  def orThrow(): Message = if (!isError) this else {
    val reply = ErrorReply.of(this)
    throw new CheckpointFailure(reply.error, reply.message)
  }
}

/**
 * Subject of a request, for errors.
 *
 * @param where batch, version, operator, store and partition, as far as the request has them
 */
private[ckpt] final case class RequestSubject(job: String, where: String)

private[ckpt] object RequestSubject {
  private val Fields = Seq("batch_id" -> "batch", "version" -> "version")
  private val OfSubtask = Seq("operator", "store", "partition")

  def of(request: Message): RequestSubject = {
    val header = request.json
    val where = Fields.collect { case (key, name) if header.has(key) => s"$name ${header.path(key).asText()}" }
    val subtask = OfSubtask.zip(header.path("subtask").elements().asScala.map(_.asText()))
    RequestSubject(request.job, (where ++ subtask.map { case (name, value) => s"$name $value" }).mkString(", "))
  }
}

/** The reply to a request that failed. */
private[protocol] final case class ErrorReply(error: String = "Error", message: String = "no reason was given")

private[protocol] object ErrorReply {
  private val json = new JsonForm(classOf[ErrorReply])

  def of(reply: Message): ErrorReply = json.read(reply)

  def toMessage(reply: ErrorReply): Message = Message.reply(json.write(reply)).copy(kind = Message.Error)
}

private[ckpt] object Message {

  /** A message in Spark's RPC. */
  type Tuple = (String, String, String, Array[Byte], Array[Byte])

  val NoBytes: Array[Byte] = Array.emptyByteArray
  val Ok = "ok"
  val Error = "error"
  val Notify = "notify"
  val Report = "report"
  val File = "file"

  /** The interim reply to a long request: the requester asks again. */
  val AskAgain: Message = Message("again", "", "{}")

  val mapper = new ObjectMapper()

  def newHeader(): ObjectNode = mapper.createObjectNode()

  def fromTuple(t: Tuple): Message = Message(t._1, t._2, t._3, t._4, t._5)

  /** A reply with this JSON. */
  def reply(header: String): Message = Message(Ok, "", header)

  def error(failure: Throwable): Message = ErrorReply.toMessage(failure match {
    case f: CheckpointFailure => ErrorReply(f.error, f.reason)
    case other => ErrorReply(other.getClass.getSimpleName, String.valueOf(other.getMessage))
  })

  /** A message whose content does not fit its kind. */
  private[protocol] def malformed(kind: String, what: String): CheckpointFailure =
    new CheckpointFailure("ProtocolError", s"malformed '$kind' message: $what")
}
