// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.common

/**
 * Base of all checkpoint errors. The message names the cause and the remedy.
 *
 * @param error  name of the error class; for errors of the side process, the Python class
 * @param text   message for people, without the name
 */
class CheckpointFailure(val error: String, text: String, cause: Throwable = null)
    extends RuntimeException(s"[$error] ${Redaction.redacted(text)}", cause) {

  /** The message for people, without credentials. */
  val reason: String = Redaction.redacted(text)
}

/** The Python side process cannot be started or does not stay alive. */
class BridgeFailure(reason: String, cause: Throwable = null) extends CheckpointFailure("BridgeError", reason, cause)

/** Misuse of a state store: a call that it does not support, or not now. */
class StoreUsageFailure(reason: String) extends CheckpointFailure("StateStoreUsageError", reason)

private[ckpt] object CheckpointFailure {

  /** The task's run is not active in this driver. */
  val NoSuchQuery = "QueryNotActiveError"

  /** A failure and its causes, the root last. A chain may be circular, so it ends after twenty. */
  def causesOf(failure: Throwable): Iterator[Throwable] =
    Iterator.iterate(failure)(_.getCause).takeWhile(_ != null).take(20)
}
