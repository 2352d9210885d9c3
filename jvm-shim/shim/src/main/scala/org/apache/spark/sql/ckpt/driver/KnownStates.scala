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
