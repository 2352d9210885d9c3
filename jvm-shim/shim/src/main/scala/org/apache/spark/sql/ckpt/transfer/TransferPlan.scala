// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.transfer

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.ckpt.protocol.Message
import org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeqMetadata
import org.apache.spark.sql.internal.SQLConf

/**
 * The state to read: that of the last committed batch of a stopped query, as `spark_ckpt.migrate` describes it.
 *
 * @param location checkpoint location, as Hadoop writes it
 * @param batchId  last committed batch
 * @param settings line of the batch's settings in the offset log
 * @param stateIds `stateUniqueIds` of its commit: by operator, per partition the ids of the stores; None in format 1
 * @param partitions number of partitions by operator; those not named have one per directory. A rescale to fewer leaves
 *                   directories behind
 */
private[transfer] final case class SourceState(
    location: String,
    batchId: Long,
    settings: String,
    stateIds: Option[Map[Long, Seq[Seq[String]]]],
    partitions: Map[Long, Int] = Map.empty) {

  /** Version of the state. */
  def version: Long = batchId + 1

  /**
   * A copy of a session's settings with those of the batch. Settings that an older Spark did not write get the values
   * in effect then (`OffsetSeqMetadata.setSessionConf`).
   */
  def conf(of: SQLConf): SQLConf = {
    val conf = of.clone()
    OffsetSeqMetadata.setSessionConf(OffsetSeqMetadata(settings), conf)
    // The offset log lacks the format of checkpoints; the commit shows it.
    conf.setConfString(SourceState.CheckpointFormat, if (stateIds.isDefined) "2" else "1")
    // A reader must not begin a changelog. It finds existing ones all the same.
    conf.setConfString(SourceState.Changelog, "false")
    // Spark checks the rows of most files while it loads them, but those in RocksDB's own only as they are read.
    conf.setConfString(SourceState.CheckedRows, "1")
    conf
  }
}

private[transfer] object SourceState {
  val CheckpointFormat = "spark.sql.streaming.stateStore.checkpointFormatVersion"
  private val Changelog = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
  private val CheckedRows = "spark.sql.streaming.stateStore.rowChecksum.readVerificationRatio"

  def of(plan: JsonNode): SourceState = SourceState(
    plan.path("location").asText(),
    plan.path("batch_id").asLong(),
    plan.path("settings").asText(),
    Option(plan.get("state_ids")).filter(_.isObject).map(_.fields().asScala.map { entry =>
      entry.getKey.toLong -> entry.getValue.elements().asScala.map(texts).toSeq
    }.toMap),
    plan.path("partitions").fields().asScala.map(entry => entry.getKey.toLong -> entry.getValue.asInt()).toMap)

  private def texts(array: JsonNode): Seq[String] = array.elements().asScala.map(_.asText()).toSeq
}

/**
 * An import.
 *
 * @param target           checkpoint location to write to
 * @param keyGroupFactors  numbering of the key groups (docs/protocol.md, section 2)
 * @param bufferBytes      memory of a task for rows
 */
private[transfer] final case class ImportPlan(
    source: SourceState,
    target: String,
    keyGroupFactors: Seq[Int],
    bufferBytes: Long)

private[transfer] object ImportPlan {
  def of(text: String): ImportPlan = {
    val plan = Message.mapper.readTree(text)
    ImportPlan(
      SourceState.of(plan.path("source")),
      plan.path("target").asText(),
      plan.path("key_group_factors").elements().asScala.map(_.asInt()).toSeq,
      plan.path("buffer_bytes").asLong())
  }
}

/**
 * An export.
 *
 * @param target           checkpoint location to write to
 * @param provider         class of the provider that writes the state
 * @param checkpointFormat format of Spark's checkpoints in the target, 1 or 2
 */
private[transfer] final case class ExportPlan(
    source: SourceState,
    target: String,
    provider: String,
    checkpointFormat: Int) {

  /** Settings of the stores that are written. */
  def conf(of: SQLConf): SQLConf = {
    val conf = source.conf(of)
    conf.setConfString(SQLConf.STATE_STORE_PROVIDER_CLASS.key, provider)
    conf.setConfString(SourceState.CheckpointFormat, checkpointFormat.toString)
    conf.setConfString(SQLConf.STATE_STORE_MIN_DELTAS_FOR_SNAPSHOT.key, "0") // maintenance writes a snapshot at once
    // The snapshot gets another name, and its checksum file would not follow.
    conf.setConfString("spark.sql.streaming.checkpoint.fileChecksum.enabled", "false")
    conf
  }
}

private[transfer] object ExportPlan {
  def of(text: String): ExportPlan = {
    val plan = Message.mapper.readTree(text)
    ExportPlan(
      SourceState.of(plan.path("source")),
      plan.path("target").asText(),
      plan.path("provider").asText(),
      plan.path("checkpoint_format").asInt())
  }
}
