// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.common

import java.util.Locale

import scala.concurrent.duration._

import io.github.sparkckpt.engine.segment.BlockCodec


/**
 * Settings that the JVM itself reads. `spark_ckpt.config` defines their meaning and defaults, and the coordinator
 * checks all settings of a query before its first batch.
 */
private[ckpt] object Settings {
  /** Only settings below this prefix reach executors (`StateStoreConf.sqlConfs`). */
  val Prefix = "spark.sql.streaming.stateStore.ckpt."

  val Python: String = Prefix + "python"
  val AckThreshold: String = Prefix + "ackThreshold"
  val BridgeTimeout: String = Prefix + "bridge.timeout"
  val BridgeSilence: String = Prefix + "bridge.silence"
  val ChangeFeed: String = Prefix + "changeFeed"
  val MemoryBudget: String = Prefix + "memory.budget"

  val Restore: String = Prefix + "restore"
  val Compression: String = Prefix + "compression"

  val RealTimeMode: String = Prefix + "realTimeMode"
  val Experimental = "experimental"

  private val DefaultMemoryBudget = "40%"
  private val Unlimited = "none"
  private val MaxPercent = 90
  private val DefaultAckThreshold = 1L << 20
  private val DefaultBridgeTimeout: FiniteDuration = 300.seconds
  private val MaxTimeout: FiniteDuration = 365.days
  private val DefaultBridgeSilence: FiniteDuration = 120.seconds
  private val MinSilence: FiniteDuration = 1.second

  /** True if deltas record every write of a batch (`changeFeed=writes`). The driver refuses unknown values. */
  def tellsWrites(settings: Map[String, String]): Boolean =
    settings.get(ChangeFeed).exists(_.trim.equalsIgnoreCase("writes"))

  /** True if queries with state may run in real-time mode. */
  def permitsRealTimeMode(settings: Map[String, String]): Boolean =
    settings.get(RealTimeMode).exists(_.trim.equalsIgnoreCase(Experimental))

  /**
   * Bytes of memory for the state of all stores of an executor, if they are limited.
   *
   * @param heap bytes of this JVM's heap
   */
  def memoryBudget(settings: Map[String, String], heap: => Long = Runtime.getRuntime.maxMemory): Option[Long] = {
    val text = settings.getOrElse(MemoryBudget, DefaultMemoryBudget).strip()
    if (text.equalsIgnoreCase(Unlimited)) {
      None
    } else {
      val bytes = Units.percent(text).filter(value => value > 0 && value <= MaxPercent).map(_ * heap / 100)
        .orElse(Units.bytes(text)).filter(value => value.isValidLong && value > 0)
      Some(bytes.fold(throw refused(MemoryBudget, "a size such as 4GiB, a share such as 40%, or none", text))(_.toLong))
    }
  }

  /** Codec of the segments that stores write. */
  def compression(settings: Map[String, String]): BlockCodec = {
    val text = settings.getOrElse(Compression, BlockCodec.Lz4.name)
    BlockCodec.named(text.strip().toLowerCase(Locale.ROOT))
      .getOrElse(throw refused(Compression, s"one of ${BlockCodec.All.map(_.name).mkString(", ")}", text))
  }

  /** Bytes up to which a segment travels with the acknowledgement. */
  def ackThreshold(settings: Map[String, String]): Long =
    settings.get(AckThreshold).fold(DefaultAckThreshold) { text =>
      Units.bytes(text).filter(_.isValidLong)
        .fold(throw refused(AckThreshold, "a number of bytes such as 64k or 1MiB", text))(_.toLong)
    }

  /** Time that a task waits for a reply. */
  def bridgeTimeout(settings: Map[String, String]): FiniteDuration =
    settings.get(BridgeTimeout).fold(DefaultBridgeTimeout) { text =>
      Units.milliseconds(text).filter(value => value > 0 && value <= MaxTimeout.toMillis)
        .fold(throw refused(BridgeTimeout, "a duration such as 300s or 5m, from 1ms to 365d", text))(_.toLong.millis)
    }

  /** Time without a sign of life after which a side process counts as hanging. */
  def bridgeSilence(settings: Map[String, String]): FiniteDuration =
    settings.get(BridgeSilence).fold(DefaultBridgeSilence) { text =>
      Units.milliseconds(text).filter(value => value >= MinSilence.toMillis && value <= MaxTimeout.toMillis)
        .fold(throw refused(BridgeSilence, "a duration such as 120s or 2m, from 1s to 365d", text))(_.toLong.millis)
    }

  private def refused(key: String, form: String, text: String) =
    new CheckpointFailure("SettingError", s"$key: '$text' is not $form")
}
