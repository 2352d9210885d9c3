// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.Try

import org.apache.spark.sql.ckpt.protocol.Message

/**
 * Unanswered requests of tasks. A task waits for a reply up to `bridge.timeout`. While the side process is busy with a
 * longer operation, the tasks of the job get the interim reply `again` and resend; the side process receives the
 * request once. Thread-safe.
 */
private[driver] final class OpenRequests {
  import OpenRequests._

  private val open = mutable.HashMap.empty[Key, Open]

  /**
   * The reply to a request, final or interim.
   *
   * @param send forwards the request; not called for a resent request. A request of a new attempt is forwarded even
   *             while the earlier attempt's waits, because that one may be lost
   */
  def ask(request: Message)(send: => Future[Message])(implicit context: ExecutionContext): Future[Message] = {
    val key = Key(request.job, request.kind, request.header)
    val promise = Promise[Message]()
    val isNew = synchronized {
      open.get(key) match {
        case Some(Open(_, Some(reply))) =>
          open.remove(key)
          promise.complete(reply)
          false
        case before =>
          val waiting = before.fold(List.empty[Promise[Message]])(_.waiting)
          open(key) = Open(promise :: waiting, None)
          before.isEmpty || waiting.nonEmpty
      }
    }
    if (isNew) send.onComplete(answered(key, _))
    promise.future
  }

  /** Makes the tasks of a job ask again, with fresh timeouts. */
  def askAgain(job: String): Unit = {
    val waiting = synchronized {
      open.toSeq.collect { case (key, Open(waiting, None)) if key.job == job =>
        open(key) = Open(Nil, None)
        waiting
      }.flatten
    }
    waiting.foreach(_.trySuccess(Message.AskAgain))
  }

  /** A job has ended: drops replies that no task has fetched. */
  def forget(job: String): Unit = synchronized {
    open.filterInPlace((key, request) => request.reply.isEmpty || key.job != job)
  }

  /** Number of requests in progress. */
  def size: Int = synchronized(open.size)

  private def answered(key: Key, reply: Try[Message]): Unit = {
    val waiting = synchronized {
      open.remove(key).fold(List.empty[Promise[Message]]) { request =>
        if (request.waiting.isEmpty) open(key) = Open(Nil, Some(reply)) // it is on its way to ask again
        request.waiting
      }
    }
    waiting.foreach(_.tryComplete(reply))
  }
}

private[driver] object OpenRequests {
  private final case class Key(job: String, kind: String, header: String)

  private final case class Open(waiting: List[Promise[Message]], reply: Option[Try[Message]])
}
