// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.bridge

import scala.collection.mutable

import org.apache.spark.sql.ckpt.protocol.{Ack, Close, Decline, TaskFailed, Trigger}

/**
 * Messages to resend to a new side process: the last `trigger` of each open job and the acks since, until their
 * checkpoint is complete (docs/protocol.md, section 1.5). Not thread-safe: [[PythonBridge]] guards it.
 */
private[bridge] final class ReplayLog {
  private final class Job(val trigger: Numbered) {
    val acks = mutable.LinkedHashMap.empty[Long, Numbered]
  }

  private val jobs = mutable.HashMap.empty[String, Job]

  /** Records a sent request. */
  def sent(request: Numbered): Unit = request.message.kind match {
    case Trigger.Kind => jobs(request.message.job) = new Job(request)
    case Ack.Kind | Decline.Kind | TaskFailed.Kind =>
      jobs.get(request.message.job).foreach(_.acks(request.id) = request)
    case Close.Kind => jobs.remove(request.message.job)
    case _ =>
  }

  /** The checkpoint of a job is complete: drops its acks. */
  def completed(job: String): Unit = jobs.get(job).foreach(_.acks.clear())

  /** An ack did not count, by its outcome or an error: drops it, because it must not count later either. */
  def failed(ack: Numbered): Unit = jobs.get(ack.message.job).foreach(_.acks.remove(ack.id))

  /** All messages to resend, in the order of sending. */
  def messages: Seq[Numbered] = jobs.values.flatMap(j => j.trigger +: j.acks.values.toSeq).toSeq.sortBy(_.id)

  /** Drops a job. */
  def forget(job: String): Unit = jobs.remove(job)
}
