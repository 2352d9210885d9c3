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
package org.apache.spark.sql.ckpt.driver

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.concurrent.{ExecutionContext, Future}
import scala.jdk.CollectionConverters._
import scala.util.{Failure, Success}

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.{Message, Notification}
import org.apache.spark.sql.ckpt.bridge.PythonBridge
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.util.ThreadUtils

/**
 * The requests of stores. They are passed on to the side process, and nothing is decided here; added is what only the
 * driver knows (the running batch's plan, the end of tasks and queries).
 *
 * @param executors that hear what the side process sends unasked
 * @param session   a session of the queries' shared state; changes as sessions come and go
 */
private[ckpt] final class CheckpointRequests(
    val bridge: PythonBridge,
    val executors: RegisteredExecutors,
    session: () => Option[SparkSession])
    extends Logging {
  import CheckpointRequests._

  private final class Job(val id: String) {
    val known = new KnownStates
    @volatile var batchId: Long = -1
    @volatile var triggered: Future[Message] = _
    @volatile var execution: Option[StreamExecution] = None
  }

  private val jobs = new ConcurrentHashMap[String, Job]()
  private val jobOfStage = new ConcurrentHashMap[Int, String]()
  private implicit val inReaderThread: ExecutionContext = ThreadUtils.sameThread

  /** The answer to a request, `ok` or `error`: it does not fail. Requests are handled one at a time. */
  def handle(request: Message): Future[Message] =
    Future.delegate(answer(request)).recover { case e => Message.error(e) }

  private def answer(request: Message): Future[Message] = synchronized {
    val header = request.json
    val job = jobs.computeIfAbsent(header.path("job").asText(), new Job(_))
    request.kind match {
      case "locate" =>
        val have = header.path("have").asText("")
        if (have.nonEmpty && job.known.isCurrent(header.path("version").asLong(), storeKey(header), have)) {
          Future.successful(Current)
        } else {
          triggerFirst(job, header).flatMap(_ => bridge.send(request))
        }
      case "ack" =>
        jobOfStage.put(header.path("task").path("stage_id").asInt(), job.id)
        triggerFirst(job, header).flatMap(_ => bridge.send(request)).map(noteAck(job, header, _))
      case _ =>
        bridge.send(request)
    }
  }

  /** Sends the trigger message of the batch unless it has been sent; a failed one is sent anew for the next message. */
  private def triggerFirst(job: Job, header: JsonNode): Future[Unit] = {
    val batchId = header.path("batch_id").asLong()
    val failedBefore = job.triggered != null && job.triggered.value.exists(_.fold(_ => true, _.isError))
    if (batchId > job.batchId || failedBefore) {
      triggerHeader(job, header, batchId) match {
        case Some(trigger) =>
          job.batchId = batchId
          job.triggered = bridge.send(Message("trigger", trigger))
        case None => // an attempt of a batch that is over: the coordinator knows what to say to it
      }
    }
    if (job.triggered == null) Future.unit else job.triggered.map { reply => reply.orThrow(); () }
  }

  private def triggerHeader(job: Job, header: JsonNode, batchId: Long): Option[String] =
    if (header.has("standalone")) {
      Some(header.path("standalone").toString)
    } else {
      val queryId = header.path("query_id").asText()
      val execution = session().flatMap(RunningBatch.find(_, UUID.fromString(queryId)))
        .filter(_.runId.toString == job.id)
        .getOrElse(throw RunningBatch.noSuchQuery(queryId, job.id))
      job.execution = Some(execution)
      RunningBatch.trigger(execution, batchId).map(_.toString)
    }

  private def noteAck(job: Job, header: JsonNode, reply: Message): Message = {
    if (!reply.isError) {
      val answer = reply.json
      if (answer.path("outcome").asText() == "success") {
        job.known.acknowledged(header.path("version").asLong(), storeKey(header), header.path("ckpt_id").asText())
      }
      if (answer.path("completed").isNumber) {
        job.known.complete(answer.path("completed_version").asLong())
      }
    }
    reply
  }

  private def storeKey(header: JsonNode) =
    StoreKey(header.path("operator_id").asLong(), header.path("store").asText(), header.path("partition").asInt())

  def taskFailed(stageId: Int, stageAttempt: Int, partition: Int, attemptNumber: Int, reason: String): Unit = {
    val job = jobOfStage.get(stageId)
    if (job != null) {
      val header = Message.newHeader()
      header
        .put("job", job)
        .put("stage_id", stageId)
        .put("stage_attempt", stageAttempt)
        .put("partition", partition)
        .put("attempt_number", attemptNumber)
        .put("reason", reason.take(MaxReason))
      tell(Message("task_failed", header.toString))
    }
  }

  def stageCompleted(stageId: Int): Unit = jobOfStage.remove(stageId)

  def queryEnded(runId: String, failed: Boolean): Unit =
    Option(jobs.remove(runId)).foreach { job =>
      close(runId, QueryStatus.of(failed, job.execution))
      val header = Message.newHeader().put("job", runId).put("event", Notification.Ended).putNull("version")
      executors.tell(Message(Message.Notify, header.toString))
    }

  /** The driver ends while queries are active. */
  def suspendAll(): Unit =
    jobs.keySet.asScala.foreach { job =>
      jobs.remove(job)
      close(job, QueryStatus.Suspended)
    }

  private def close(job: String, status: String): Unit =
    tell(Message("close", Message.newHeader().put("job", job).put("status", status).toString))

  /** Passes a message on that is not answered. */
  def tell(message: Message): Unit = bridge.send(message).onComplete {
    case Success(reply) if reply.isError => logWarning(s"${message.kind} was answered with ${reply.header}")
    case Failure(e) => logWarning(s"${message.kind} could not be told to the side process", e)
    case _ =>
  }
}

private[ckpt] object CheckpointRequests {
  private val Current = Message(Message.Ok, """{"current":true}""")
  private val MaxReason = 1000
}
