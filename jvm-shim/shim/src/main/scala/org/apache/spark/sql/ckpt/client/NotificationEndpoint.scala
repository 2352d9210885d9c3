// SPDX-License-Identifier: Apache-2.0
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
