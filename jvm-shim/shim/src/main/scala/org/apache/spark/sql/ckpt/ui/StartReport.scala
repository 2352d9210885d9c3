// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.ckpt.common.Settings
import org.apache.spark.sql.ckpt.protocol.Message

/** A claim of a location by a run: of this one, or of an earlier one that it has fenced. */
private[ui] final class Claim(json: JsonNode) {
  def runId: String = json.path("run_id").asText("")
  def generation: Option[Long] = CheckpointReport.number(json.path("generation"))
  def host: String = json.path("host").asText("")
  def pid: Option[Long] = CheckpointReport.number(json.path("pid"))
  def claimedMs: Option[Long] = CheckpointReport.number(json.path("claimed_ms"))
}

/** Value of a setting. `isSet` is false for the default, which is empty if it depends on the query. */
private[ui] final case class SettingInForce(key: String, value: String, isSet: Boolean, default: String)

/** Fields of the report of a run's start. */
private[ui] final class StartReport(json: JsonNode) {
  def claim: Claim = new Claim(json)
  def fenced: Seq[Claim] = elements("fenced").map(new Claim(_))

  /** Side processes of the driver that it has killed before this start, because they gave no sign of life. */
  def hung: Long = CheckpointReport.number(json.path("hung")).getOrElse(0L)
  def location: String = json.path("location").asText("")
  def maxParallelism: Option[Long] = CheckpointReport.number(json.path("max_parallelism"))
  def keyGroupFactors: Seq[Long] = elements("key_group_factors").map(_.asLong())
  def sparkVersion: String = json.path("spark_version").asText("")
  def version: String = json.path("spark_ckpt_version").asText("")

  def settings: Seq[SettingInForce] = elements("settings").map { setting =>
    val key = Settings.Prefix + setting.path(0).asText("")
    SettingInForce(key, setting.path(1).asText(""), setting.path(2).asBoolean(), setting.path(3).asText(""))
  }

  private def elements(name: String): Seq[JsonNode] = json.path(name).elements().asScala.toSeq
}

private[ui] object StartReport {

  /** None for an empty text: the report is lost, or of a release without it. */
  def of(text: String): Option[StartReport] =
    if (text.isEmpty) None else Some(new StartReport(Message.mapper.readTree(text)))
}
