// SPDX-License-Identifier: Apache-2.0
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
