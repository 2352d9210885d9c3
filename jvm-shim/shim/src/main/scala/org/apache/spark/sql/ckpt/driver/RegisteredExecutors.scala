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

import java.util.concurrent.ConcurrentHashMap

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.rpc.RpcEndpointRef
import org.apache.spark.sql.ckpt.protocol.Message

/**
 * Executors with stores, which receive the side process's notifications (docs/protocol.md, section 1.4). Thread-safe.
 */
private[ckpt] final class RegisteredExecutors extends Logging {

  // By id: references of executors that accept no connections have no address, so all are equal.
  private val endpoints = new ConcurrentHashMap[String, RpcEndpointRef]()

  def add(executorId: String, endpoint: RpcEndpointRef): Unit = endpoints.put(executorId, endpoint)

  def remove(executorId: String): Unit = endpoints.remove(executorId)

  /** Forwards a notification. An unreachable executor is lost for good, so it is forgotten. */
  def tell(notification: Message): Unit = endpoints.forEach { (executorId, endpoint) =>
    try endpoint.send(notification.toTuple) catch {
      case NonFatal(e) =>
        logDebug(s"executor $executorId no longer gets notifications", e)
        endpoints.remove(executorId, endpoint)
    }
  }
}
