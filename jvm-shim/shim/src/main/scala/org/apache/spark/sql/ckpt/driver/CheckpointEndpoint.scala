// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import scala.concurrent.ExecutionContext

import org.apache.spark.rpc.{IsolatedThreadSafeRpcEndpoint, RpcCallContext, RpcEndpointRef, RpcEnv}
import org.apache.spark.sql.ckpt.common.OwnThreads
import org.apache.spark.sql.ckpt.protocol.{Coordinator, Message}

/** RPC endpoint for the messages of tasks. */
private[ckpt] final class CheckpointEndpoint(override val rpcEnv: RpcEnv, requests: CheckpointRequests)
    extends IsolatedThreadSafeRpcEndpoint {

  private implicit val inReaderThread: ExecutionContext = OwnThreads.WhereCompleted

  override def receive: PartialFunction[Any, Unit] = {
    case (Coordinator.Register, executorId: String, endpoint: RpcEndpointRef) =>
      OwnThreads.guard("the registration of an executor")(requests.executors.add(executorId, endpoint))
    case (kind: String, job: String, header: String, index: Array[Byte], payload: Array[Byte]) =>
      OwnThreads.guard(s"the message $kind")(requests.tell(Message(kind, job, header, index, payload)))
  }

  override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = {
    case (kind: String, job: String, header: String, index: Array[Byte], payload: Array[Byte]) =>
      // Without an answer the task would wait for its timeout.
      try requests.handle(Message(kind, job, header, index, payload)).foreach(reply => context.reply(reply.toTuple))
      catch {
        case e: Throwable =>
          OwnThreads.failed(s"the request $kind", e)
          context.reply(Message.error(e).toTuple)
      }
  }
}
