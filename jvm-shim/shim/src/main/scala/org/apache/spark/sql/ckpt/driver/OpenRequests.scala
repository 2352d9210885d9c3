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

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.Try

import org.apache.spark.sql.ckpt.protocol.Message

/**
 * Requests of tasks that are not answered yet. A task waits for a reply as long as `bridge.timeout` says. While the
 * side process is at work on something that takes longer, the tasks of the job get the interim reply `again`, and ask
 * once more; the side process gets the request once. Thread-safe.
 */
private[driver] final class OpenRequests {
  import OpenRequests._

  private val open = mutable.HashMap.empty[Key, Open]

  /**
   * The reply to a request, or the interim one.
   *
   * @param send passes the request on; not called for a task that asks once more. A new attempt, which asks the same
   *             while the earlier one still waits, is passed on: what the earlier one has sent may be lost
   */
  def ask(request: Message)(send: => Future[Message])(implicit context: ExecutionContext): Future[Message] = {
    val key = (request.kind, request.header)
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

  /** Has the tasks of a job ask again: they have got the interim reply when their time begins anew. */
  def askAgain(job: String): Unit = {
    val waiting = synchronized {
      open.toSeq.collect { case (key, Open(waiting, None)) if jobOf(key) == job =>
        open(key) = Open(Nil, None)
        waiting
      }.flatten
    }
    waiting.foreach(_.trySuccess(Message.AskAgain))
  }

  /** A job has ended: replies that its tasks have not asked for again are dropped. */
  def forget(job: String): Unit = synchronized {
    open.filterInPlace((key, request) => request.reply.isEmpty || jobOf(key) != job)
  }

  /** Number of requests that are not done with. */
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
  private type Key = (String, String)

  private final case class Open(waiting: List[Promise[Message]], reply: Option[Try[Message]])

  private def jobOf(key: Key): String = Message(key._1, key._2).job
}
