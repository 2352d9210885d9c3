// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.bridge

import scala.collection.mutable

/**
 * Requests that the running side process has not answered, and detection of one that kills it repeatedly. Not
 * thread-safe: [[PythonBridge]] guards it.
 *
 * Each request in flight at a death is a suspect. The first process after a death receives all open requests at once.
 * After the second death with the same request in flight, the next process receives them one at a time. So the next
 * death identifies one request, and requests of other queries get through.
 *
 * @param limit deaths that one request may cause
 */
private[bridge] final class RequestsInFlight(limit: Int) {
  import RequestsInFlight._

  private val inFlight = mutable.LinkedHashMap.empty[Long, Numbered]
  private val held = mutable.Queue.empty[Numbered]
  private val deaths = mutable.HashMap.empty[Long, Int]
  private var isStarted = false
  private var lastCareful = NoRequest
  private var sawNew = false

  /** A new process will receive these requests, in ascending order of their numbers, once it has started. */
  def starting(requests: Seq[Numbered]): Unit = {
    clear()
    val open = requests.map(_.id).toSet
    deaths.filterInPlace((id, _) => open(id))
    held ++= requests
    if (deaths.valuesIterator.exists(_ >= CarefulFrom)) lastCareful = requests.last.id
  }

  /** The process has started; returns the requests to send now. */
  def started(): Seq[Numbered] = {
    isStarted = true
    sendable()
  }

  /** Adds a request; returns the requests to send now. */
  def add(request: Numbered): Seq[Numbered] = {
    sawNew = true
    held.enqueue(request)
    sendable()
  }

  /** A request was answered; returns the requests to send now. */
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
   * @param hadStarted true if it had answered `start`
   * @param culprit    request that has exceeded the limit of deaths
   * @param wasIdle    true if it had no work and no request beyond those resent to it
   */
  final case class Death(hadStarted: Boolean, culprit: Option[Numbered], wasIdle: Boolean)
}
