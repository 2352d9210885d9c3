// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.ckpt.locate

import java.io.{DataInputStream, FileNotFoundException}
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import io.github.sparkckpt.engine.segment.SegmentHeader

import org.apache.spark.sql.ckpt.common.{CheckpointFailure, StateIds}
import org.apache.spark.sql.ckpt.common.FormatDescription._
import org.apache.spark.sql.ckpt.files.{CheckpointPaths, FormatFeatures, HandlePlace, StateFiles, StoreSegments}
import org.apache.spark.sql.ckpt.protocol.{Message, PartitionFilter, SegmentRef}
import org.apache.spark.sql.execution.streaming.state.StateStoreId

/**
 * Locator of state in the checkpoint directory alone, for readers without a query on the driver (the `statestore` data
 * source). For a running query, its coordinator locates state instead.
 *
 * @param files of the checkpoint directory
 */
private[ckpt] final class DirectoryLocator(files: StateFiles) {
  import DirectoryLocator._

  /** @throws CheckpointFailure if no checkpoint of this version is retained, or one is unreadable */
  def locate(id: StateStoreId, version: Long): StateLocation = {
    val checkpoints = logged().getOrElse(scanned())
    val checkpoint = checkpoints.find(_.version == version).getOrElse(throw notRetained(version, checkpoints))
    val (batch, found) = read(checkpoint.path, (batch, operatorId) =>
      if (!java.util.Arrays.equals(operatorId, operatorIdOf(batch, id))) Set.empty
      else storeOf(batch, id).toSet.flatMap(StoreSegments.handles(_: JsonNode, id.partitionId)).map(_.subtask))
    val store = storeOf(batch, id).getOrElse(throw new CheckpointFailure("StoreNotFoundError",
      s"checkpoint ${checkpoint.number} has no store '${id.storeName}' of operator ${id.operatorId}"))
    val handles = StoreSegments.handles(store, id.partitionId).map { place =>
      val handle = found.get(place.subtask).flatMap(_.lift(place.place))
      place -> handle.getOrElse(throw new CheckpointFailure("MetadataFormatError",
        s"${files.path(checkpoint.path)} has no handle ${place.place} of subtask ${place.subtask} of operator " +
          s"${id.operatorId}, which its master state $SparkBatch names: the file is damaged"))
    }
    StateLocation(
      stateId(store, id.partitionId).getOrElse(s"checkpoint-${checkpoint.number}"),
      batch.path("key_group_factors").elements().asScala.map(_.asInt()).toArray,
      store.path("name").asText(),
      Option(store.get("state_format_version")).filter(_.isInt).map(_.asInt()),
      store.path("rows").path(id.partitionId).asLong(0),
      handles.zipAll(SubtaskFilters.of(store, id.partitionId), null, Nil)
        .collect { case ((place, handle), filters) if handle.blocks.count > 0 => described(handle, place, filters) },
      Some(store.path("parallelism").asInt()))
  }

  /** Checkpoints of the log, newest id first; None without a log. */
  private def logged(): Option[Seq[Checkpoint]] = {
    val names =
      if (files.exists(CompletedDirectory)) files.list(CompletedDirectory).filter(RecordName.matches(_))
      else Nil
    if (names.isEmpty) None
    else Some(withoutVoid(names
      .sorted // ids have leading zeros
      .reverse
      .map { name =>
        val record = Message.mapper.readTree(files.readFully(s"$CompletedDirectory/$name"))
        val file = files.path(s"$CompletedDirectory/$name").toString
        FormatFeatures.checkVersion(file, record.path("format").asInt(RecordFormat), RecordFormat)
        FormatFeatures.check(file, record)
        record
      })
      .filter(!isClaim(_))
      .map(checkpointOf))
  }

  /** Checkpoints by directory, as in `spark_ckpt.location.listing`; incomplete ones do not count. */
  private def scanned(): Seq[Checkpoint] =
    directories(files)
      .flatMap { case (number, name) =>
        val path = s"$name/$MetadataName"
        try Some(Checkpoint(number, read(path, (_, _) => Set.empty)._1.path("version").asLong(), path)) catch {
          case e: CheckpointFailure if e.error != FormatFeatures.Unsupported => None
          case _: FileNotFoundException => None
        }
      }

  /** The master state of a `_metadata`, and the handles of an operator's `wanted` subtasks. */
  private def read(path: String, wanted: (JsonNode, Array[Byte]) => Set[Int])
      : (JsonNode, Map[Int, Seq[SegmentHandle]]) = {
    var batch: JsonNode = null
    val handles = MetadataReader.using(files.path(path).toString, new DataInputStream(files.open(path))) { reader =>
      reader.read(
        operatorId => if (batch == null) Set.empty else wanted(batch, operatorId),
        (name, version, payload) => if (name == SparkBatch) {
          FormatFeatures.checkVersion(files.path(path).toString, version, SparkBatchVersion)
          batch = Message.mapper.readTree(payload)
          FormatFeatures.check(files.path(path).toString, batch)
        })
    }
    if (batch == null) throw new CheckpointFailure("MetadataFormatError", s"$path has no master state $SparkBatch")
    (batch, handles)
  }

  /** The segment of a handle, with the versions that its first block names. */
  private def described(handle: SegmentHandle, place: HandlePlace, filters: Seq[PartitionFilter]): SegmentRef = {
    val source = files.source(handle.file, handle.blocks.data)
    val first = try SegmentHeader.of(source, handle.blocks.offsets.head) finally source.close()
    handle.segment(if (first.isBase) 0 else first.version - place.covers + 1, first.version, filters)
  }

  private def notRetained(version: Long, checkpoints: Seq[Checkpoint]): CheckpointFailure =
    new CheckpointFailure("CheckpointNotFoundError",
      s"no checkpoint of state version $version (batch ${version - 1}) is retained in ${files.path(".")}; there are " +
        s"versions ${checkpoints.map(_.version).sorted.mkString(", ")}. " +
        "To keep more, raise spark.sql.streaming.stateStore.ckpt.retained")
}

private[ckpt] object DirectoryLocator {
  /**
   * The records that count, by the rules of `spark_ckpt.completed.void_records`: without those that a driver created
   * after it had lost the log.
   *
   * @param records records, newest id first
   */
  private[ckpt] def withoutVoid(records: Seq[JsonNode]): Seq[JsonNode] = {
    val kept = Seq.newBuilder[JsonNode]
    var seen: Option[Set[Long]] = None
    var hasClaim = false
    var below = Long.MaxValue
    records.foreach { record =>
      val generation = record.path("generation").asLong()
      if (seen.forall(_.contains(record.path("id").asLong())) && (!isClaim(record) || generation < below)) {
        kept += record
        below = math.min(below, if (isClaim(record)) generation else generation + 1)
        if (isClaim(record) && !hasClaim) {
          hasClaim = true
          seen = Option(record.get("seen")).filter(_.isArray).map(_.elements().asScala.map(_.asLong()).toSet)
        }
      }
    }
    kept.result()
  }

  private def isClaim(record: JsonNode): Boolean = record.path("kind").asText() == "claim"

  /** True if a query has checkpoints here. */
  def hasCheckpoints(files: StateFiles): Boolean = files.exists(CompletedDirectory) || directories(files).nonEmpty

  /** Directories `chk-<id>` and `chk-<id>-<attempt>`, newest id first. Numbers beyond 64 bits are not ours. */
  private def directories(files: StateFiles): Seq[(Long, String)] =
    if (!files.exists(".")) Nil
    else files.list(".")
      .flatMap {
        case name @ CheckpointDirectory(number, attempt) =>
          number.toLongOption.zip(Option(attempt).fold(Option(1L))(_.toLongOption)).map { case (n, a) => (n, a, name) }
        case _ => None
      }
      .sortBy(found => (found._1, found._2))
      .reverse
      .map { case (number, _, name) => (number, name) }

  private def checkpointOf(record: JsonNode): Checkpoint = {
    val id = record.path("id").asLong()
    val path = record.path("metadata").path("path").asText()
    if (!CheckpointPaths.isMetadata(path)) throw CheckpointPaths.refused(path, s"the record of checkpoint $id")
    Checkpoint(id, record.path("version").asLong(), path)
  }

  /** @param path of its `_metadata`, relative to the `ckpt` directory */
  private final case class Checkpoint(number: Long, version: Long, path: String)

  private def storeOf(batch: JsonNode, id: StateStoreId): Option[JsonNode] = batch.path("stores").elements().asScala
    .find(s => s.path("operator_id").asLong() == id.operatorId && s.path("store").asText() == id.storeName)

  /** State id of a subtask, from the base64 of 16 bytes per subtask; None if there are none. */
  private def stateId(store: JsonNode, partition: Int): Option[String] =
    Option(store.path("ckpt_ids").binaryValue())
      .map(_.slice(partition * StateIdBytes, (partition + 1) * StateIdBytes))
      .filter(_.length == StateIdBytes)
      .map(StateIds.of)

  /** As `spark_ckpt.checkpoint.compose.operator_id_of`. */
  private def operatorIdOf(batch: JsonNode, id: StateStoreId): Array[Byte] =
    MessageDigest.getInstance("SHA-256")
      .digest(s"${batch.path("query_id").asText()}/${id.operatorId}/${id.storeName}".getBytes(UTF_8))
      .take(OperatorIdBytes)
}
