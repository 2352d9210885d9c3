// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.client

import scala.annotation.tailrec
import scala.concurrent.duration.FiniteDuration

import org.apache.spark.{SparkEnv, SparkException}
import org.apache.spark.rpc.{RpcEndpointRef, RpcTimeout}
import org.apache.spark.sql.ckpt.common.Settings
import org.apache.spark.sql.ckpt.protocol.{Coordinator, Message, Query, QueryReply}
import org.apache.spark.util.RpcUtils

/**
 * Requests of an executor to the checkpoint coordinator, on the driver if there is one.
 *
 * @param withoutApplication the coordinator of a JVM where no Spark application runs
 */
private[ckpt] final class CoordinatorClient(withoutApplication: () => Coordinator) {
  import CoordinatorClient._

  /**
   * Sends a request and waits for the answer; sends it again while the coordinator answers that it is still at work.
   *
   * @param timeout wait for each answer; the ack that completes a checkpoint is answered when that is durable
   * @throws org.apache.spark.sql.ckpt.common.CheckpointFailure with the text of an `error` reply, or if the driver is
   *                                                            out of reach
   */
  @tailrec
  def ask(request: Message, timeout: FiniteDuration): Message = {
    val rpcTimeout = new RpcTimeout(timeout, Settings.BridgeTimeout)
    val reply =
      if (SparkEnv.get == null) rpcTimeout.awaitResult(withoutApplication().handle(request))
      else Message.fromTuple(endpoint().askSync[Message.Tuple](request.toTuple, rpcTimeout))
    if (reply.kind == Message.AskAgain.kind) ask(request, timeout) else reply.orThrow()
  }

  /**
   * True if a run is that of a query that is active in the driver. Without an endpoint on the driver there is none: the
   * endpoint precedes a query's first task.
   *
   * @throws org.apache.spark.sql.ckpt.common.CheckpointFailure if the driver cannot tell
   */
  def isActive(runId: String, timeout: FiniteDuration): Boolean =
    SparkEnv.get != null && hasEndpoint && QueryReply.of(ask(Query(runId).toMessage, timeout)).active

  /** Sends a one-way message, which may get lost. */
  def tell(message: Message): Unit =
    if (SparkEnv.get == null) withoutApplication().tell(message)
    else endpoint().send(message.toTuple)
}

private object CoordinatorClient {

  /** Spark's error for a missing endpoint. The class is private to Spark. */
  private val NoEndpoint = "org.apache.spark.rpc.RpcEndpointNotFoundException"

  private var cached: (SparkEnv, RpcEndpointRef) = _

  private def hasEndpoint: Boolean =
    try {
      endpoint()
      true
    } catch {
      case e: SparkException if e.getCause != null && e.getCause.getClass.getName == NoEndpoint => false
    }

  /** The driver's endpoint. The first use in an executor registers it for notifications. */
  private def endpoint(): RpcEndpointRef = synchronized {
    val env = SparkEnv.get
    if (cached == null || (cached._1 ne env)) {
      val driver = RpcUtils.makeDriverRef(Coordinator.Endpoint, env.conf, env.rpcEnv)
      val own = env.rpcEnv.setupEndpoint(
        NotificationEndpoint.Name, new NotificationEndpoint(env.rpcEnv, LoadedStores.here))
      driver.send((Coordinator.Register, env.executorId, own))
      cached = (env, driver)
    }
    cached._2
  }
}
