// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.bridge

import java.util.concurrent.{ConcurrentHashMap, CountDownLatch, RejectedExecutionException, TimeUnit}

import scala.collection.mutable
import scala.concurrent.{Await, Future, Promise, TimeoutException}
import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.common.{BridgeFailure, CheckpointFailure, OwnThreads}
import org.apache.spark.sql.ckpt.protocol.{Ack, AckReply, EndOffsets, Message, RequestSubject, Start}

/**
 * Requests to the Python side process and their replies. A dead process is restarted and brought up to date
 * ([[ReplayLog]]); its successor answers the waiting requests.
 *
 * A request that ends more than [[PythonBridge.MaxCrashes]] processes ([[RequestsInFlight]]) fails, and so does the
 * rest of its job until `close`; other jobs continue. If as many processes in a row end before they have started, all
 * waiting requests fail; the next request tries again.
 *
 * The side process requests files, usually while a request of ours waits for it. Separate threads serve those, so that
 * neither the reader nor a waiting thread blocks them.
 *
 * A process that hangs is killed and replaced like a dead one. It gets a `ping` where it has nothing else to answer, so
 * it hangs if it gives no sign of life for some time ([[Silence]]), however slow its work is.
 *
 * @param python       the Python executable
 * @param sparkVersion version of Spark for the side process
 * @param files        files that the side process reads and writes through this JVM
 * @param silence      time without a sign of life after which a process counts as hanging
 * @param onNotify     called on the reader thread for each notification and report; must not block
 */
private[ckpt] final class PythonBridge(
    python: String,
    sparkVersion: String,
    files: HadoopFiles,
    silence: FiniteDuration,
    onNotify: Message => Unit)
    extends SideProcessStatus
    with Logging {
  import PythonBridge._

  private val waiting = new ConcurrentHashMap[Long, Promise[Message]]()
  private val lock = new Object
  private val unanswered = mutable.LinkedHashMap.empty[Long, Numbered]
  private val replayLog = new ReplayLog
  private val inFlight = new RequestsInFlight(MaxCrashes)
  private val givenUp = mutable.HashMap.empty[String, BridgeFailure]
  private val fileThreads = OwnThreads.unboundedPool("spark-ckpt-files")
  private var nextId = 0L
  @volatile private var process: BridgeProcess = _
  @volatile private var starts = 0L
  @volatile private var killed = 0L
  private var failedStarts = 0
  private var closed = false

  private val interval = Silence.interval(silence)
  private val atEnd = new CountDownLatch(1)
  OwnThreads.daemon("spark-ckpt-bridge-watch")(watchOver()).start()

  /** Starts the process ahead of the first request, unless this is closed: then nothing would end it. */
  def warmUp(): Unit = lock.synchronized { if (!closed) ensureProcess() }

  override def pid: Option[Long] = Option(process).map(_.pid)

  override def restarts: Long = (starts - 1).max(0)

  override def hung: Long = killed

  override def openRequests: Int = waiting.size

  /** Sends a request. The future holds the reply (`ok` or `error`) or fails with a [[CheckpointFailure]]. */
  def send(message: Message): Future[Message] = {
    val promise = Promise[Message]()
    lock.synchronized {
      if (closed) {
        promise.failure(ending)
      } else if (givenUp.nonEmpty && failureOf(message).isDefined) {
        promise.failure(failureOf(message).get)
      } else {
        val request = Numbered(nextId, message)
        nextId += 1
        try {
          ensureProcess()
          waiting.put(request.id, promise)
          unanswered(request.id) = request
          replayLog.sent(request)
          inFlight.add(request).foreach(process.send)
        } catch {
          case e: BridgeFailure => promise.failure(e)
        }
      }
    }
    promise.future
  }

  /** Waits for open replies before it closes the process's input: the process may need files for them. */
  def close(): Unit = {
    val (last, asked) = lock.synchronized {
      closed = true
      (process, waiting.values.asScala.map(_.future).toSeq)
    }
    val deadline = EndTimeout.fromNow
    asked.foreach { reply =>
      try Await.ready(reply, deadline.timeLeft max Duration.Zero) catch { case _: TimeoutException => () }
    }
    atEnd.countDown()
    if (last != null) last.close()
    lock.synchronized(fail(_ => true, ending)).foreach(_())
    fileThreads.shutdown()
  }

  /** The failure of an abandoned job; its `close` clears it. */
  private def failureOf(message: Message): Option[BridgeFailure] = {
    val job = message.job
    if (message.kind == "close") {
      givenUp.remove(job)
      None
    } else {
      givenUp.get(job)
    }
  }

  private def ensureProcess(): Unit = if (process == null) {
    val silent = new Silence(silence, interval, () => System.nanoTime())
    process = new BridgeProcess(Seq(python, "-c", Program), silent, onMessage, onEnd)
    starts += 1
    logInfo(s"started the Python side process ${process.pid}: $python, module spark_ckpt.bridge")
    val again = (replayLog.messages ++ unanswered.values).distinctBy(_.id).sortBy(_.id)
    inFlight.starting(again)
    if (again.nonEmpty) logInfo(s"resending ${again.size} messages to the new side process")
    val start = Start(ProtocolVersion, sparkVersion, ProcessHandle.current().pid(), hung)
    process.send(Numbered(StartId, start.toMessage))
  }

  /** Nothing that a killed process had still written counts: its successor may decide otherwise. */
  private def onMessage(from: BridgeProcess, received: Numbered): Unit = if (from == process) {
    received.message.kind match {
      case Message.Notify | Message.Report =>
        OwnThreads.guard(s"the handling of a ${received.message.kind}")(onNotify(received.message))
      case Message.File => fileThreads.execute(() => from.send(Numbered(received.id, files.handle(received.message))))
      case _ => if (received.id != PingId) onReply(from, received)
    }
  }

  private def onReply(from: BridgeProcess, reply: Numbered): Unit = {
    val promise = lock.synchronized(if (from == process) answered(reply) else null)
    if (promise != null) promise.trySuccess(reply.message)
    else if (reply.id == StartId && reply.message.isError) logError(reply.message.header)
  }

  /** The waiting promise of an answered request, or null. */
  private def answered(reply: Numbered): Promise[Message] = {
    val next = if (reply.id == StartId) started() else inFlight.answered(reply.id)
    next.foreach(process.send)
    unanswered.remove(reply.id).foreach { request =>
      if (request.message.kind == Ack.Kind) {
        // The task that asked fails with a malformed reply.
        val answer = Option.when(!reply.message.isError)(reply.message).flatMap(r => Try(AckReply.fieldsOf(r)).toOption)
        if (!answer.exists(_.counts)) replayLog.failed(request)
        else if (answer.exists(_.completed.isDefined)) replayLog.completed(request.message.job)
      } else if (request.message.kind == EndOffsets.Kind && !reply.message.isError) {
        replayLog.completed(request.message.job)
      }
    }
    waiting.remove(reply.id)
  }

  private def started(): Seq[Numbered] = {
    failedStarts = 0
    inFlight.started()
  }

  private def onEnd(ended: BridgeProcess): Unit =
    lock.synchronized {
      if (process != ended) Nil // it was killed, and a successor may be running
      else {
        abandonFiles()
        if (closed) fail(_ => true, ending)
        else {
          process = null
          afterDeath(ended, "")
        }
      }
    }.foreach(_())

  private def watchOver(): Unit =
    while (!atEnd.await(interval.toNanos, TimeUnit.NANOSECONDS)) OwnThreads.guard("a look at the side process")(look())

  /** Kills the process if it hangs. It may not end at once, as in a call of the kernel that does not return. */
  private def look(): Unit =
    lock.synchronized {
      val watched = process
      if (watched == null || closed) Nil
      else if (watched.silence.look()) {
        val seconds = watched.silence.nanos / 1000000000L
        killed += 1
        logWarning(s"the Python side process ${watched.pid} has given no sign of life for $seconds s: killing it and " +
          "starting another one, which continues with the same checkpoints")
        process = null
        watched.kill()
        abandonFiles()
        afterDeath(watched, s": killed by the driver, because it had given no sign of life for $seconds s")
      } else {
        if (watched.silence.nanos > 0) watched.send(Numbered(PingId, Message("ping", "", "{}")))
        Nil
      }
    }.foreach(_())

  private def abandonFiles(): Unit = {
    val close = files.abandon()
    try fileThreads.execute(() => close())
    catch { case _: RejectedExecutionException => () } // the driver ends
  }

  /**
   * Actions that fail requests, to be run without the lock, which is held here.
   *
   * @param cause cause of the death, for people, if it is known
   */
  private def afterDeath(ended: BridgeProcess, cause: String): Seq[() => Unit] = {
    val code = ended.exitCode.fold("unknown")(_.toString) + cause
    val words = ended.lastWords
    logWarning(s"the Python side process ${ended.pid} ended with exit code $code")
    val death = inFlight.died()
    if (!death.hadStarted) failedStarts += 1
    if (NoPackage.findFirstIn(words).isDefined) fail(_ => true, noPackage(words))
    else if (ended.isOfOtherVersion || OtherColumns.findFirstIn(words).isDefined) fail(_ => true, otherVersion(words))
    else if (failedStarts > MaxCrashes) {
      val deaths = failedStarts
      failedStarts = 0
      fail(_ => true, new BridgeFailure(s"the Python side process ($python, module spark_ckpt.bridge) ended $deaths " +
        s"times in a row before it had started, last with exit code $code. The last lines of its log:\n$words"))
    } else {
      val failed = death.culprit.toSeq.flatMap(request => giveUp(request, code, words))
      // An idle process that ends would end as often as it is started.
      if (death.wasIdle && unanswered.isEmpty) failed else failed ++ restart()
    }
  }

  private def giveUp(culprit: Numbered, code: String, words: String): Seq[() => Unit] = {
    val subject = RequestSubject.of(culprit.message)
    val job = subject.job
    val failure = new BridgeFailure(
      s"the Python side process ended ${MaxCrashes + 1} times over one request: '${culprit.message.kind}' of the run " +
        s"$job, ${subject.where}. This run gets no more checkpoints; other queries continue. Remove the cause " +
        s"and start the query again. Last exit code $code (137 or 9: killed, usually for lack of memory). " +
        s"The last lines of its log:\n$words")
    logError(failure.getMessage)
    givenUp(job) = failure
    replayLog.forget(job)
    fail(request => request.message.job == job, failure)
  }

  private def restart(): Seq[() => Unit] =
    try {
      ensureProcess()
      Nil
    } catch {
      case e: BridgeFailure => fail(_ => true, e)
      // No other thread answers them.
      case e: Throwable =>
        OwnThreads.failed("the start of a side process", e)
        fail(_ => true, new BridgeFailure(s"the Python side process cannot be started: $e", e))
    }

  /** Actions that fail requests. Called with the lock held; the actions run without it. */
  private def fail(which: Numbered => Boolean, failure: CheckpointFailure): Seq[() => Unit] = {
    val failed = unanswered.values.filter(which).map(_.id).toSeq
    unanswered --= failed
    failed.flatMap(id => Option(waiting.remove(id))).map(promise => () => { promise.tryFailure(failure); () })
  }

  private def ending = new BridgeFailure("the Spark application is ending")

  private def noPackage(words: String) = new BridgeFailure(
    s"the Python at '$python' has no package spark_ckpt: install it there (pip install spark-ckpt) or set " +
      s"spark.sql.streaming.stateStore.ckpt.python to a Python that has it. Its error: " +
      words.linesIterator.toSeq.last)

  private def otherVersion(words: String) = new CheckpointFailure("ProtocolError",
    s"the jar speaks version $ProtocolVersion of the protocol, and the package spark_ckpt of the Python at '$python' " +
      s"another one: install both from the same release. The last lines of its log:\n$words")
}

private[ckpt] object PythonBridge {
  /**
   * The reply to a request that the driver waits for itself.
   *
   * @throws org.apache.spark.sql.ckpt.common.CheckpointFailure if it is an error, or does not come in time
   */
  def await(asked: Future[Message], timeout: FiniteDuration): Message =
    try Await.result(asked, timeout).orThrow()
    catch {
      case _: TimeoutException =>
        throw new BridgeFailure(s"the Python side process has not answered within $timeout")
    }

  val ProtocolVersion = 5
  val MaxCrashes = 5
  private val EndTimeout = 4.seconds
  private val StartId = -1L
  private val PingId = -2L

  /**
   * `python -m` imports modules of the working directory, trusted or not. The option `-P` against that needs Python
   * 3.11. Entries of `PYTHONPATH` stay.
   */
  private val Program = "import sys; sys.path[:] = filter(None, sys.path); import runpy; " +
    "runpy.run_module('spark_ckpt.bridge', run_name='__main__', alter_sys=True)"

  /** Python's error for a missing package. */
  private val NoPackage = "No module named '?spark_ckpt".r

  /** Python's error for a stream with the columns of another version of the protocol. */
  private val OtherColumns = "the stream has the columns |speaks an earlier version of the protocol".r
}
