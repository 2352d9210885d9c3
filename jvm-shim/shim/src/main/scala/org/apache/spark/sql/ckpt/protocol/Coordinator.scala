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
package org.apache.spark.sql.ckpt.protocol

import scala.concurrent.Future

/** Receiver of the stores' requests, on the driver. */
private[ckpt] trait Coordinator {

  /** The reply to a request, `ok` or `error`. The future does not fail. */
  def handle(request: Message): Future[Message]

  /** Takes a one-way message. */
  def tell(message: Message): Unit
}

private[ckpt] object Coordinator {

  /** Name of the RPC endpoint on the driver. */
  val Endpoint = "spark-ckpt"

  /** First element of the message with which an executor registers for notifications. */
  val Register = "register"

  /** Limit of a reason or failure in a message, in characters. */
  val MaxReason = 1000
}
