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
