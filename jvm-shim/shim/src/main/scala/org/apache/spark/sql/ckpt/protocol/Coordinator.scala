// SPDX-License-Identifier: Apache-2.0
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
