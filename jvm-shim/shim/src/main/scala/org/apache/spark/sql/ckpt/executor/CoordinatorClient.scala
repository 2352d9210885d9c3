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

import scala.concurrent.duration._

import org.apache.spark.SparkEnv
import org.apache.spark.rpc.{RpcEndpointRef, RpcTimeout}
import org.apache.spark.sql.ckpt.Message
import org.apache.spark.sql.ckpt.driver.{CheckpointDriver, CheckpointEndpoint}
import org.apache.spark.util.RpcUtils

/** Requests of an executor to the checkpoint coordinator, on the driver if there is one. */
private[ckpt] object CoordinatorClient {
  private var cached: (SparkEnv, RpcEndpointRef) = _

  /**
   * Asks and waits.
   *
   * @param timeoutSeconds how long; the answer to the ack that completes a checkpoint comes when that is durable
   * @throws org.apache.spark.sql.ckpt.CheckpointFailure with what an `error` reply says, or if the driver cannot be asked
   */
  def ask(request: Message, timeoutSeconds: Long): Message = {
    val timeout = new RpcTimeout(timeoutSeconds.seconds, "spark.sql.streaming.stateStore.ckpt.bridge.timeout")
    val reply =
      if (SparkEnv.get == null) timeout.awaitResult(CheckpointDriver.withoutApplication.handle(request))
      else Message.fromTuple(endpoint().askSync[(String, String, Array[Byte], Array[Byte])](request.toTuple, timeout))
    reply.orThrow()
  }

  /** Tells without waiting, and without knowing whether it arrives. */
  def tell(message: Message): Unit =
    if (SparkEnv.get == null) CheckpointDriver.withoutApplication.tell(message)
    else endpoint().send(message.toTuple)

  /** The first use in an executor also asks the driver for notifications. */
  private def endpoint(): RpcEndpointRef = synchronized {
    val env = SparkEnv.get
    if (cached == null || (cached._1 ne env)) {
      val driver = RpcUtils.makeDriverRef(CheckpointEndpoint.Name, env.conf, env.rpcEnv)
      val own = env.rpcEnv.setupEndpoint(
        NotificationEndpoint.Name, new NotificationEndpoint(env.rpcEnv, LoadedStores.here))
      driver.send((CheckpointEndpoint.Register, env.executorId, own))
      cached = (env, driver)
    }
    cached._2
  }
}
