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
package org.apache.spark.sql.ckpt.protocol

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.ckpt.common.CheckpointFailure

/**
 * A request or a reply between executors, the driver's endpoint and the Python side process (docs/protocol.md, section
 * 1).
 *
 * @param kind    the request; in replies `ok`, `error` or, to a task, `again`; `notify` for unsolicited messages;
 *                `report` for reports of checkpoints; `file` for requests of the side process
 * @param header  the small fields, a JSON object
 * @param index   key groups and offsets, fixed-width little-endian integers
 * @param payload state bytes
 */
private[ckpt] final case class Message(
    kind: String,
    header: String,
    index: Array[Byte] = Message.NoBytes,
    payload: Array[Byte] = Message.NoBytes) {

  /** The message as it crosses Spark's RPC: types known to every class loader. */
  def toTuple: (String, String, Array[Byte], Array[Byte]) = (kind, header, index, payload)

  def json: JsonNode = Message.mapper.readTree(header)

  /** Run id of the query, or `standalone:<directory>`. */
  def job: String = json.path("job").asText()

  def isError: Boolean = kind == Message.Error

  /** This message, unless it is an error reply: then the error is thrown. */
  def orThrow(): Message = if (isError) throw CheckpointFailure.of(json) else this
}

/**
 * Subject of a request, for errors.
 *
 * @param where batch, version, operator, store and partition, as far as the request has them
 */
private[ckpt] final case class RequestSubject(job: String, where: String)

private[ckpt] object RequestSubject {
  private val Fields = Seq("batch_id" -> "batch", "version" -> "version", "operator_id" -> "operator",
    "store" -> "store", "partition" -> "partition")

  def of(request: Message): RequestSubject = {
    val header = request.json
    val where = Fields.collect { case (key, name) if header.has(key) => s"$name ${header.path(key).asText()}" }
    RequestSubject(request.job, where.mkString(", "))
  }
}

private[ckpt] object Message {
  val NoBytes: Array[Byte] = Array.emptyByteArray
  val Ok = "ok"
  val Error = "error"
  val Notify = "notify"
  val Report = "report"
  val File = "file"

  /** The interim reply to a long request: the requester asks again. */
  val AskAgain: Message = Message("again", "{}")

  val mapper = new ObjectMapper()

  def newHeader(): ObjectNode = mapper.createObjectNode()

  def fromTuple(t: (String, String, Array[Byte], Array[Byte])): Message = Message(t._1, t._2, t._3, t._4)

  def error(failure: Throwable): Message = {
    val header = newHeader()
    failure match {
      case f: CheckpointFailure =>
        header.put("error", f.error).put("message", f.reason)
      case other =>
        header.put("error", other.getClass.getSimpleName).put("message", String.valueOf(other.getMessage))
    }
    Message(Error, header.toString)
  }
}
