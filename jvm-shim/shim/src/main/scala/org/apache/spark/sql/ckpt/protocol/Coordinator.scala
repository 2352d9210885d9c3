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

/** The driver's side of the requests of stores. */
private[ckpt] trait Coordinator {

  /** The answer to a request, `ok` or `error`: it does not fail. */
  def handle(request: Message): Future[Message]

  /** Takes a message that is not answered. */
  def tell(message: Message): Unit
}

private[ckpt] object Coordinator {

  /** Name of the RPC endpoint on the driver. */
  val Endpoint = "spark-ckpt"

  /** First element of the message by which an executor asks for notifications. */
  val Register = "register"

  /** Characters of a reason or failure that a message carries at most. */
  val MaxReason = 1000
}
