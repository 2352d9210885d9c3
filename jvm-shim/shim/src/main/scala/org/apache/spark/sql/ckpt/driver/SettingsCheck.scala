// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import java.util.Locale

import scala.concurrent.Future

import org.apache.spark.sql.ckpt.bridge.PythonBridge
import org.apache.spark.sql.ckpt.common.{CheckpointFailure, Settings}
import org.apache.spark.sql.ckpt.protocol.{Check, Message}

/**
 * Check of a query's settings by the coordinator before the first batch. The request goes out while Spark plans the
 * batch, so the reply has usually arrived when it is needed.
 *
 * A run of a query has its own thread and fixed settings, so the reply is kept per thread.
 */
private[driver] final class SettingsCheck {
  private val answer = new ThreadLocal[Future[Message]]

  /** Sends the request, unless this thread has sent it before. */
  def begin(bridge: PythonBridge, settings: Map[String, String]): Unit =
    if (answer.get() == null) answer.set(bridge.send(SettingsCheck.request(settings)))

  /** Waits for the reply; fails with the invalid setting. */
  def await(settings: Map[String, String]): Unit = {
    val asked = answer.get()
    if (asked != null) {
      val timeout = try Settings.bridgeTimeout(settings) catch {
        case _: CheckpointFailure => Settings.bridgeTimeout(Map.empty)
      }
      PythonBridge.await(asked, timeout)
    }
  }
}

private[driver] object SettingsCheck {

  /** Only keys that may be meant for spark-ckpt leave the JVM. */
  private[driver] def request(settings: Map[String, String]): Message =
    Check(settings.filter { case (key, _) => mayBeOurs(key) }).toMessage

  private def mayBeOurs(key: String): Boolean = {
    val lower = key.toLowerCase(Locale.ROOT)
    lower.startsWith("spark.sql.streaming.") || lower.contains("ckpt") || lower.contains("statestore")
  }
}
