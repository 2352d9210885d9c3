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

import scala.collection.mutable

/**
 * Requests that the present side process has been sent and has not answered, and the one that ends it again
 * and again. Not thread-safe: [[PythonBridge]] guards it.
 *
 * A process that dies has as many suspects as it had requests in flight. The first process after a death is told all of
 * them at once. A request that was in flight at two deaths makes the next process a careful one: it gets what was open
 * one request at a time, so the one in flight at its death is the one to blame, and the requests of other queries get
 * through.
 *
 * @param limit deaths of the process that one request may cause
 */
private[bridge] final class RequestsInFlight(limit: Int) {
  import RequestsInFlight._

  private val inFlight = mutable.LinkedHashMap.empty[Long, Numbered]
  private val held = mutable.Queue.empty[Numbered]
  private val deaths = mutable.HashMap.empty[Long, Int]
  private var isStarted = false
  private var lastCareful = NoRequest
  private var sawNew = false

  /** A new process is to be told these requests, in ascending order of their numbers, once it has started. */
  def starting(requests: Seq[Numbered]): Unit = {
    clear()
    deaths.filterInPlace((id, _) => requests.exists(_.id == id))
    held ++= requests
    if (deaths.valuesIterator.exists(_ >= CarefulFrom)) lastCareful = requests.last.id
  }

  /** The process takes requests; returns those that it gets now. */
  def started(): Seq[Numbered] = {
    isStarted = true
    sendable()
  }

  /** Another request is to be sent; returns what the process gets now. */
  def add(request: Numbered): Seq[Numbered] = {
    sawNew = true
    held.enqueue(request)
    sendable()
  }

  /** A request is answered; returns what the process gets now. */
  def answered(id: Long): Seq[Numbered] = {
    inFlight.remove(id)
    if (isCareful && !(inFlight.keysIterator ++ held.iterator.map(_.id)).exists(_ <= lastCareful)) {
      lastCareful = NoRequest
    }
    sendable()
  }

  /** The process has died. */
  def died(): Death = {
    inFlight.keysIterator.foreach(id => deaths(id) = deaths.getOrElse(id, 0) + 1)
    val culprit = Some(inFlight.values.toSeq).collect { case Seq(only) if deaths(only.id) > limit => only }
    val death = Death(isStarted, culprit, wasIdle = inFlight.isEmpty && held.isEmpty && !sawNew)
    clear()
    death
  }

  private def isCareful: Boolean = lastCareful != NoRequest

  private def clear(): Unit = {
    inFlight.clear()
    held.clear()
    isStarted = false
    lastCareful = NoRequest
    sawNew = false
  }

  private def sendable(): Seq[Numbered] = {
    val now = if (!isStarted) Nil
      else if (!isCareful) held.dequeueAll(_ => true).toSeq
      else if (inFlight.isEmpty && held.nonEmpty) Seq(held.dequeue())
      else Nil
    now.foreach(request => inFlight(request.id) = request)
    now
  }
}

private[bridge] object RequestsInFlight {
  private val CarefulFrom = 2
  private val NoRequest = Long.MinValue

  /**
   * End of a process.
   *
   * @param hadStarted true if it has answered `start`
   * @param culprit    the request that has ended more processes than one request may
   * @param wasIdle    true if it had nothing to do, and was asked for nothing but what its predecessors had been asked
   */
  final case class Death(hadStarted: Boolean, culprit: Option[Numbered], wasIdle: Boolean)
}
