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
package org.apache.spark.sql.ckpt

/** Names of the settings that the JVM itself reads. Their meaning and defaults are documented in `spark_ckpt.config`. */
private[ckpt] object Settings {
  /** Only settings below this prefix reach executors (`StateStoreConf.sqlConfs`). */
  val Prefix = "spark.sql.streaming.stateStore.ckpt."

  val Python: String = Prefix + "python"
  val AckThreshold: String = Prefix + "ackThreshold"
  val BridgeTimeout: String = Prefix + "bridge.timeout"
  val ChangeFeed: String = Prefix + "changeFeed"

  val DefaultAckThreshold: Long = 1L << 20
  val DefaultBridgeTimeoutSeconds: Long = 300

  /** Whether deltas are to have every write of a batch: a value of `changeFeed`. Another one is refused on the driver. */
  def tellsWrites(settings: Map[String, String]): Boolean =
    settings.get(ChangeFeed).exists(_.trim.equalsIgnoreCase("writes"))

  def long(settings: Map[String, String], key: String, default: Long): Long =
    settings.get(key).fold(default) { text =>
      text.trim.toLongOption.filter(_ >= 0).getOrElse(
        throw new CheckpointFailure("SettingError", s"$key must be a whole number of 0 or more, not '$text'"))
    }
}
