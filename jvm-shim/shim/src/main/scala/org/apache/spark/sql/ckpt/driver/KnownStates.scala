// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import scala.collection.mutable

import org.apache.spark.sql.ckpt.common.StateIds
import org.apache.spark.sql.ckpt.protocol.{StoreRequest, SubtaskKey}

/**
 * State ids of all stores of a job at the newest completed version. It caches decisions of the coordinator, so a store
 * with that state in memory gets its reply without a round trip to the side process. Thread-safe.
 */
private[driver] final class KnownStates {
  private var completedVersion = -1L
  private var completed = Map.empty[SubtaskKey, String]
  private var pendingVersion = -1L
  private val pending = mutable.HashMap.empty[SubtaskKey, String]

  def acknowledged(version: Long, key: SubtaskKey, stateId: String): Unit = synchronized {
    if (version != pendingVersion) {
      pending.clear()
      pendingVersion = version
    }
    pending(key) = stateId
  }

  def complete(version: Long): Unit = synchronized {
    if (version == pendingVersion) {
      completed = pending.toMap
      completedVersion = version
    }
  }

  /**
   * True if a store has the version's state in memory. False if Spark requests another state id, which the side process
   * refuses.
   */
  def isCurrent(locate: StoreRequest): Boolean = locate.have.exists { stateId =>
    stateId.nonEmpty && locate.stateId.forall(StateIds.areEqual(_, stateId)) &&
      isKnown(locate.version, locate.subtask, stateId)
  }

  private def isKnown(version: Long, key: SubtaskKey, stateId: String): Boolean = synchronized {
    version == completedVersion && completed.get(key).contains(stateId)
  }
}
