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
package org.apache.spark.sql.ckpt.bridge

import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable
import scala.concurrent.{Await, Future, Promise, TimeoutException}
import scala.concurrent.duration._
import scala.jdk.CollectionConverters._

import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.{BridgeFailure, Message}
import org.apache.spark.util.ThreadUtils

/**
 * Requests to the Python side process and their replies. A process that dies is started again and told what it must
 * know to go on ([[ReplayLog]]); the requests that wait are answered by the new one. After
 * [[PythonBridge.MaxCrashes]] deaths with no reply in between, the requests that wait fail; the next request tries anew.
 *
 * The side process asks for files on its part, most often while a request of ours waits for it. Those requests have
 * threads of their own, so that neither the reader nor whoever waits for a reply is in their way.
 *
 * @param python       the Python executable
 * @param sparkVersion told to the side process at its start
 * @param files        what the side process reads and writes through this JVM
 * @param onNotify     called on the reader thread, for every notification; must not block
 */
private[ckpt] final class PythonBridge(
    python: String,
    sparkVersion: String,
    files: HadoopFiles,
    onNotify: Message => Unit)
    extends Logging {
  import PythonBridge._

  private val waiting = new ConcurrentHashMap[Long, Promise[Message]]()
  private val lock = new Object
  private val unanswered = mutable.LinkedHashMap.empty[Long, Numbered]
  private val replayLog = new ReplayLog
  private val fileThreads = ThreadUtils.newDaemonCachedThreadPool("spark-ckpt-files")
  private var nextId = 0L
  private var process: BridgeProcess = _
  private var crashes = 0
  private var closed = false

  /** Starts the process now, so that the first request need not wait for it. */
  def warmUp(): Unit = lock.synchronized { ensureProcess() }

  /** Process id of the side process that is alive now, for diagnosis. */
  def pid: Option[Long] = lock.synchronized(Option(process).map(_.pid))

  /** Sends a request. The future holds the reply (`ok` or `error`), or fails with [[BridgeFailure]]. */
  def send(message: Message): Future[Message] = {
    val promise = Promise[Message]()
    lock.synchronized {
      if (closed) {
        promise.failure(ending)
      } else {
        val request = Numbered(nextId, message)
        nextId += 1
        try {
          ensureProcess()
          waiting.put(request.id, promise)
          unanswered(request.id) = request
          replayLog.sent(request)
          process.send(request)
        } catch {
          case e: BridgeFailure => promise.failure(e)
        }
      }
    }
    promise.future
  }

  /** What was asked is answered before the input of the process ends: it may need files on the way. */
  def close(): Unit = {
    val (last, asked) = lock.synchronized {
      closed = true
      (process, waiting.values.asScala.map(_.future).toSeq)
    }
    val deadline = PatienceAtTheEnd.fromNow
    asked.foreach { reply =>
      try Await.ready(reply, deadline.timeLeft max Duration.Zero) catch { case _: TimeoutException => () }
    }
    if (last != null) last.close()
    failAll(ending)
    fileThreads.shutdown()
  }

  private def ensureProcess(): Unit = if (process == null) {
    process = new BridgeProcess(Seq(python, "-m", "spark_ckpt.bridge"), onMessage, onEnd)
    logInfo(s"started the Python side process ${process.pid}: $python -m spark_ckpt.bridge")
    val start = Message.newHeader()
    start.put("protocol", ProtocolVersion).put("spark_version", sparkVersion).put("pid", ProcessHandle.current().pid())
    process.send(Numbered(StartId, Message("start", start.toString)))
  }

  private def onMessage(from: BridgeProcess, received: Numbered): Unit = received.message.kind match {
    case Message.Notify => onNotify(received.message)
    case Message.File => fileThreads.execute(() => from.send(Numbered(received.id, files.handle(received.message))))
    case _ => onReply(received)
  }

  private def onReply(reply: Numbered): Unit = {
    val promise = lock.synchronized {
      crashes = 0
      unanswered.remove(reply.id).foreach { request =>
        if (request.message.kind == "ack") {
          if (reply.message.isError) replayLog.failed(request)
          else if (reply.message.json.path("completed").isNumber) {
            replayLog.completed(request.message.json.path("job").asText())
          }
        }
      }
      waiting.remove(reply.id)
    }
    if (promise != null) promise.trySuccess(reply.message)
    else if (reply.id == StartId && reply.message.isError) logError(reply.message.header)
  }

  private def onEnd(ended: BridgeProcess): Unit = {
    files.abandon()
    val failure = lock.synchronized {
      if (process != ended) None
      else if (closed) Some(ending)
      else {
        process = null
        crashes += 1
        val code = ended.exitCode
        val words = ended.lastWords
        logWarning(s"the Python side process ${ended.pid} ended with exit code ${code.getOrElse("unknown")}")
        if (words.contains("No module named") && words.contains("spark_ckpt")) Some(noPackage(words))
        else if (crashes > MaxCrashes) Some(new BridgeFailure(
          s"the Python side process ($python -m spark_ckpt.bridge) ended $crashes times in a row, last with exit " +
            s"code ${code.getOrElse("unknown")}. Its last lines:\n$words"))
        else restart()
      }
    }
    failure.foreach { f =>
      lock.synchronized { crashes = 0 }
      failAll(f)
    }
  }

  /** Called with the lock held. */
  private def restart(): Option[BridgeFailure] =
    try {
      ensureProcess()
      val again = (replayLog.messages ++ unanswered.values).distinctBy(_.id).sortBy(_.id)
      again.foreach(process.send)
      logInfo(s"told the new side process ${again.size} messages again")
      None
    } catch {
      case e: BridgeFailure => Some(e)
    }

  private def failAll(failure: BridgeFailure): Unit = {
    val promises = lock.synchronized {
      val all = unanswered.keys.toSeq.flatMap(id => Option(waiting.remove(id)))
      unanswered.clear()
      all
    }
    promises.foreach(_.tryFailure(failure))
  }

  private def ending = new BridgeFailure("the Spark application is ending")

  private def noPackage(words: String) = new BridgeFailure(
    s"the Python at '$python' has no package spark_ckpt: install it there (pip install spark-ckpt) or set " +
      s"spark.sql.streaming.stateStore.ckpt.python to a Python that has it. It said: ${words.linesIterator.toSeq.last}")
}

private[ckpt] object PythonBridge {
  val ProtocolVersion = 3
  val MaxCrashes = 5
  private val PatienceAtTheEnd = 4.seconds
  private val StartId = -1L
}
