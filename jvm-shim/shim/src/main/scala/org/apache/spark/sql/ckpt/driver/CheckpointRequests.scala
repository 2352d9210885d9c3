// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import java.util.concurrent.ConcurrentHashMap

import scala.concurrent.{ExecutionContext, Future}
import scala.concurrent.duration.FiniteDuration
import scala.jdk.CollectionConverters._
import scala.util.{Failure, Success}

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.bridge.PythonBridge
import org.apache.spark.sql.ckpt.common.OwnThreads
import org.apache.spark.sql.ckpt.metrics.CheckpointMetrics
import org.apache.spark.sql.ckpt.protocol._
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution

/**
 * Requests of stores, forwarded to the side process. Nothing is decided here. The driver adds only its own knowledge:
 * the plan of the running batch, the end of tasks and queries.
 *
 * @param executors receivers of the side process's unsolicited messages
 * @param runs      the active runs
 * @param metrics   metrics of the queries; None without an application
 * @param post      receives reports of checkpoints for people; must not block
 */
private[ckpt] final class CheckpointRequests(
    val bridge: PythonBridge,
    val executors: RegisteredExecutors,
    private[driver] val runs: SeenRuns,
    metrics: Option[CheckpointMetrics],
    post: JsonNode => Unit)
    extends Coordinator
    with Logging {
  private final class Job(val id: String) {
    @volatile var known = new KnownStates
    @volatile var batchId: Long = -1
    @volatile var triggered: Future[Message] = _
    @volatile var execution: Option[StreamExecution] = None
    @volatile var current: Message = LocateReply.current(limits = None)

    /** True once the side process has accepted a trigger. */
    @volatile var isOpen = false
  }

  private val jobs = new ConcurrentHashMap[String, Job]()
  private val jobOfStage = new JobsOfStages
  private val open = new OpenRequests

  val rescales = new WantedRescales
  private implicit val inReaderThread: ExecutionContext = OwnThreads.WhereCompleted

  /** Requests are handled one at a time. Each gets an answer, whatever is thrown: its task waits. */
  override def handle(request: Message): Future[Message] = open.ask(request) {
    val answered = try answer(request) catch { case e: Throwable if !OwnThreads.isOfBrokenJvm(e) => Future.failed(e) }
    answered.recover { case e => Message.error(e) }
  }

  /** Handles an unsolicited message of the side process. */
  def notified(notification: Message): Unit =
    if (notification.kind == Message.Report) {
      val report = notification.json
      metrics.foreach(_.reported(report))
      post(report)
    } else {
      val notified = Notification.of(notification)
      notified.event match {
        case Notification.GoingBack => open.askAgain(notification.job)
        case Notification.Rescale => notified.partitions.foreach(rescales.want(notification.job, _))
        case _ => executors.tell(notification)
      }
    }

  private def answer(request: Message): Future[Message] = synchronized {
    request.kind match {
      case Locate.Kind =>
        val (job, asked) = (jobOf(request), StoreRequest.of(request))
        if (job.known.isCurrent(asked)) Future.successful(job.current)
        else triggerFirst(job, asked).flatMap(_ => bridge.send(request))
      case Ack.Kind =>
        val (job, ack) = (jobOf(request), StoreRequest.of(request))
        ack.task.foreach(task => jobOfStage.put(task.stageId, job.id))
        triggerFirst(job, ack).flatMap(_ => bridge.send(request)).map(noteAck(job, ack, _))
      case Query.Kind =>
        Future.successful(QueryReply(runs.active(request.job).isDefined).toMessage)
      case _ =>
        bridge.send(request)
    }
  }

  private def jobOf(request: Message): Job = jobs.getOrDefault(request.job, new Job(request.job))

  /**
   * Completes the checkpoint of a batch in real-time mode; it is durable on return.
   *
   * @param offsetLog text of `offsets/<batch>`, which Spark is about to write
   * @throws org.apache.spark.sql.ckpt.common.CheckpointFailure if the checkpoint is not complete
   */
  def endOffsets(runId: String, batchId: Long, offsetLog: String, timeout: FiniteDuration): Unit = {
    val reply = PythonBridge.await(bridge.send(EndOffsets(runId, batchId, batchId + 1, offsetLog).toMessage), timeout)
    val version = EndOffsetsReply.of(reply).completedVersion
    Option(jobs.get(runId)).foreach(_.known.complete(version))
  }

  /**
   * Asks the coordinator whether the next batch can have another number of partitions.
   *
   * @param version version of the state that the batch starts from
   * @return the number before, and the ids of the states that the batch begins with
   * @throws org.apache.spark.sql.ckpt.common.CheckpointFailure if it cannot
   */
  def rescale(runId: String, version: Long, partitions: Int, timeout: FiniteDuration): RescaleReply = {
    val reply = RescaleReply.of(
      PythonBridge.await(bridge.send(Rescale(runId, version, partitions).toMessage), timeout))
    // Tables in memory have the rows of the partitions before.
    Option(jobs.get(runId)).foreach(_.known = new KnownStates)
    reply
  }

  /** Sends the batch's trigger message once; after a failure, again with the next message. */
  private def triggerFirst(job: Job, request: StoreRequest): Future[Unit] = {
    val batchId = request.batchId
    val failedBefore = job.triggered != null && job.triggered.value.exists(_.fold(_ => true, _.isError))
    if (batchId > job.batchId || failedBefore) {
      triggerOf(job, request) match {
        case Some(trigger) =>
          if (jobs.put(job.id, job) == null) began(job)
          job.batchId = batchId
          job.triggered = bridge.send(trigger).map(noteTrigger(job, _))
        case None => // an attempt of a batch that is over: the coordinator knows what to say to it
      }
    }
    if (job.triggered == null) Future.unit else job.triggered.map { reply => reply.orThrow(); () }
  }

  private def began(job: Job): Unit =
    for (metrics <- metrics; run <- job.execution) metrics.began(job.id, run.id.toString, Option(run.name))

  /** Tasks with their state in memory do not ask the side process, but must keep to the same limits. */
  private def noteTrigger(job: Job, reply: Message): Message = {
    if (!reply.isError) {
      job.isOpen = true
      job.current = LocateReply.current(Some(TriggerReply.of(reply).limits))
    }
    reply
  }

  private def triggerOf(job: Job, request: StoreRequest): Option[Message] =
    Trigger.within(job.id, request).orElse {
      val execution = runs.active(job.id).getOrElse(throw RunningBatch.noSuchQuery(job.id))
      job.execution = Some(execution)
      RunningBatch.trigger(execution, request.batchId, isFirst = !job.isOpen).map(_.toMessage)
    }

  private def noteAck(job: Job, ack: StoreRequest, reply: Message): Message = {
    if (!reply.isError) {
      val answer = AckReply.fieldsOf(reply)
      if (answer.isSuccess) ack.stateId.foreach(job.known.acknowledged(ack.version, ack.subtask, _))
      if (answer.completed.isDefined) answer.completedVersion.foreach(job.known.complete)
    }
    reply
  }

  def taskFailed(stageId: Int, stageAttempt: Int, partition: Int, attemptNumber: Int, reason: String): Unit = {
    jobOfStage.get(stageId).foreach { job =>
      val shortened = reason.take(Coordinator.MaxReason)
      tell(TaskFailed(job, stageId, stageAttempt, partition, attemptNumber, shortened).toMessage)
    }
  }

  def stageCompleted(stageId: Int): Unit = jobOfStage.remove(stageId)

  /** @param exception stack trace of the failure that has ended the query */
  def queryEnded(runId: String, exception: Option[String]): Unit = {
    runs.ended(runId)
    jobOfStage.forget(runId)
    open.forget(runId)
    rescales.forget(runId)
    Option(jobs.remove(runId)).foreach { job =>
      metrics.foreach(_.ended(runId, exception))
      close(runId, QueryStatus.of(exception.isDefined, job.execution)).onComplete(_ => metrics.foreach(_.closed(runId)))
      executors.tell(Notification(Notification.Ended).toMessage(runId))
    }
  }

  /** The driver ends with active queries. */
  def suspendAll(): Unit =
    jobs.keySet.asScala.foreach { job =>
      jobs.remove(job)
      close(job, QueryStatus.Suspended)
    }

  private def close(job: String, status: String): Future[Message] = send(Close(job, status).toMessage)

  override def tell(message: Message): Unit = send(message)

  /** Sends a message whose sender needs no answer. */
  private def send(message: Message): Future[Message] = bridge.send(message).andThen {
    case Success(reply) if reply.isError => logWarning(s"the side process refused ${message.kind}: ${reply.header}")
    case Failure(e) => logWarning(s"cannot send ${message.kind} to the side process", e)
    case _ =>
  }
}
