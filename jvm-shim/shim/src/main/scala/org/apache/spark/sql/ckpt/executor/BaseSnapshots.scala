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
package org.apache.spark.sql.ckpt.executor

import java.util.concurrent.atomic.AtomicReference

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.backend.BaseSnapshot
import org.apache.spark.util.ThreadUtils

/** A base that is written and waits to travel with the next ack. */
private[ckpt] final case class ReadyBase(version: Long, stateId: String, rows: Long, segment: ShippedSegment)

/**
 * Base snapshots of one store, written in the background while batches go on: at most one at a time, and one that waits.
 *
 * @param ackThreshold bytes up to which a base travels with the ack and is no file of its own
 */
private[ckpt] final class BaseSnapshots(files: StateFiles, ackThreshold: Long) extends Logging {
  private sealed trait State
  private case object Idle extends State
  private final class Writing extends State
  private final case class Ready(base: ReadyBase) extends State

  private val state = new AtomicReference[State](Idle)

  def isIdle: Boolean = state.get() eq Idle

  /** Writes a snapshot in the background. The snapshot is closed in any case. */
  def start(snapshot: BaseSnapshot, stateId: String): Unit = {
    val writing = new Writing
    if (state.compareAndSet(Idle, writing)) {
      BaseSnapshots.pool.execute { () =>
        val next = try Ready(write(snapshot, stateId)) catch {
          case NonFatal(e) =>
            logWarning("a base snapshot failed; the deltas stay, and the coordinator will ask again", e)
            Idle
        } finally snapshot.close()
        // Forgotten in the meantime: nobody has heard of the file yet, so it can go.
        if (!state.compareAndSet(writing, next)) next match {
          case Ready(base) => base.segment.path.foreach(files.delete)
          case _ =>
        }
      }
    } else {
      snapshot.close()
    }
  }

  /** Writes a snapshot now, in place of whatever is under way. */
  def writeNow(snapshot: BaseSnapshot, stateId: String): Unit = {
    forget()
    try state.set(Ready(write(snapshot, stateId))) finally snapshot.close()
  }

  /** The base that waits. From here on the coordinator owns its file. */
  def take(): Option[ReadyBase] = state.get() match {
    case ready @ Ready(base) if state.compareAndSet(ready, Idle) => Some(base)
    case _ => None
  }

  /** Drops what waits or is being written. */
  def forget(): Unit = state.getAndSet(Idle) match {
    case Ready(base) => base.segment.path.foreach(files.delete)
    case _ =>
  }

  private def write(snapshot: BaseSnapshot, stateId: String): ReadyBase = {
    val segment =
      if (snapshot.rawBytes <= ackThreshold) ShippedSegment.inline(snapshot.toBytes())
      else ShippedSegment.inFile(files, "base")(snapshot.write)
    ReadyBase(snapshot.version, stateId, snapshot.rows, segment)
  }
}

private[ckpt] object BaseSnapshots {
  // One thread an executor: bases are to cost batches as little as possible, not to be quick.
  private lazy val pool = ThreadUtils.newDaemonFixedThreadPool(1, "spark-ckpt-base-snapshot")
}
