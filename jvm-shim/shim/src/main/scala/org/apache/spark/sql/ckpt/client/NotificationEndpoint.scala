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
package org.apache.spark.sql.ckpt.client

import org.apache.spark.rpc.{IsolatedThreadSafeRpcEndpoint, RpcEnv}
import org.apache.spark.sql.ckpt.common.OwnThreads
import org.apache.spark.sql.ckpt.protocol.{Message, Notification}

/** RPC endpoint for notifications on an executor. It has its own thread, because a store may have much to free. */
private[ckpt] final class NotificationEndpoint(override val rpcEnv: RpcEnv, stores: LoadedStores)
    extends IsolatedThreadSafeRpcEndpoint {

  override def receive: PartialFunction[Any, Unit] = {
    case (Message.Notify, job: String, header: String, _: Array[Byte], _: Array[Byte]) =>
      OwnThreads.guard("the handling of a notification") {
        stores.tell(job, Notification.of(Message(Message.Notify, job, header)))
      }
  }
}

private[ckpt] object NotificationEndpoint {
  val Name = "spark-ckpt-notifications"
}
