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

package org.apache.spark.sql.ckpt.executor

import java.io.{DataInputStream, FileNotFoundException}
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.ckpt.{CheckpointFailure, Message}
import org.apache.spark.sql.execution.streaming.state.StateStoreId

/**
 * Finds the state of a version in the checkpoint directory alone, for readers with no query on the driver behind them
 * (the `statestore` data source). Where a query runs, its coordinator is asked instead.
 *
 * @param files of the checkpoint directory
 */
private[ckpt] final class DirectoryLocator(files: StateFiles) {
  import DirectoryLocator._

  /** @throws CheckpointFailure if no checkpoint of this version is retained, or one cannot be read */
  def locate(id: StateStoreId, version: Long): StateLocation = {
    val checkpoints = logged().getOrElse(scanned())
    val checkpoint = checkpoints.find(_.version == version).getOrElse(throw notRetained(version, checkpoints))
    val (batch, found) = read(checkpoint.path, (batch, operatorId) =>
      if (!java.util.Arrays.equals(operatorId, operatorIdOf(batch, id))) Set.empty
      else storeOf(batch, id).toSet.flatMap(StoreSegments.handles(_: JsonNode, id.partitionId)).map(_.subtask))
    val store = storeOf(batch, id).getOrElse(throw new CheckpointFailure("StoreNotFoundError",
      s"checkpoint ${checkpoint.number} has no store '${id.storeName}' of operator ${id.operatorId}"))
    val segments = StoreSegments.handles(store, id.partitionId).map { handle =>
      found.get(handle.subtask).flatMap(_.lift(handle.place)).getOrElse(throw new CheckpointFailure("MetadataFormatError",
        s"${files.path(checkpoint.path)} has no handle ${handle.place} of subtask ${handle.subtask} of operator " +
          s"${id.operatorId}, which its master state $SparkBatch names: it is damaged"))
    }
    StateLocation(
      store.path("ckpt_ids").path(id.partitionId).asText(s"checkpoint-${checkpoint.number}"),
      batch.path("key_group_factors").elements().asScala.map(_.asInt()).toArray,
      store.path("name").asText(),
      Option(store.get("state_format_version")).filter(_.isInt).map(_.asInt()),
      store.path("rows").path(id.partitionId).asLong(0),
      segments.zipAll(PartitionFilter.ofSubtask(store, id.partitionId), null, Nil)
        .collect { case (s, filters) if s.offsets.nonEmpty => s.copy(isBase = startsWithBase(s), filters = filters) },
      Some(store.path("parallelism").asInt()))
  }

  /** The checkpoints of the log, newest first by number; None if no store has kept a log here. */
  private def logged(): Option[Seq[Checkpoint]] = {
    val names = if (files.exists(Completed)) files.list(Completed).filter(_.matches("\\d+\\.json")) else Nil
    if (names.isEmpty) None
    else Some(names
      .sortBy(_.stripSuffix(".json").toLong)
      .reverse
      .map(name => Message.mapper.readTree(files.readFully(s"$Completed/$name")))
      .filter(_.path("kind").asText() == "checkpoint")
      .map(r => Checkpoint(r.path("id").asLong(), r.path("version").asLong(), r.path("metadata").path("path").asText())))
  }

  /** The checkpoints by their directories, as `spark_ckpt.coordinator.scan` finds them: those that are not whole are none. */
  private def scanned(): Seq[Checkpoint] =
    directories(files)
      .flatMap { case (number, name) =>
        val path = s"$name/_metadata"
        try Some(Checkpoint(number, read(path, (_, _) => Set.empty)._1.path("version").asLong(), path)) catch {
          case _: CheckpointFailure | _: FileNotFoundException => None
        }
      }

  /** The master state of a `_metadata`, and the segments of the subtasks that are `wanted` of an operator. */
  private def read(path: String, wanted: (JsonNode, Array[Byte]) => Set[Int])
      : (JsonNode, Map[Int, Seq[StateLocation.Segment]]) = {
    var batch: JsonNode = null
    val segments = MetadataReader.using(files.path(path).toString, new DataInputStream(files.open(path))) { reader =>
      reader.read(
        operatorId => if (batch == null) Set.empty else wanted(batch, operatorId),
        (name, payload) => if (name == SparkBatch) batch = Message.mapper.readTree(payload))
    }
    if (batch == null) throw new CheckpointFailure("MetadataFormatError", s"$path has no master state $SparkBatch")
    (batch, segments)
  }

  private def startsWithBase(segment: StateLocation.Segment): Boolean = {
    val opened = segment.open(files)
    try {
      val header = new Array[Byte](KindAt + 1)
      opened.source.readFully(segment.offsets.head, header, 0, header.length)
      header(KindAt) == Base
    } finally opened.source.close()
  }

  private def notRetained(version: Long, checkpoints: Seq[Checkpoint]): CheckpointFailure =
    new CheckpointFailure("CheckpointNotFoundError",
      s"no checkpoint of state version $version (batch ${version - 1}) is retained in ${files.path(".")}; there are " +
        s"versions ${checkpoints.map(_.version).sorted.mkString(", ")}. " +
        "More are kept with spark.sql.streaming.stateStore.ckpt.retained")
}

private[ckpt] object DirectoryLocator {
  private val Completed = "completed"
  private val Directory = "chk-(\\d+)(?:-(\\d+))?".r
  private val SparkBatch = "spark-batch"
  private val KindAt = 5
  private val Base: Byte = 1

  /** Whether a query keeps its checkpoints here. */
  def hasCheckpoints(files: StateFiles): Boolean = files.exists(Completed) || directories(files).nonEmpty

  /** The directories `chk-<id>` and `chk-<id>-<attempt>`, newest first by number. */
  private def directories(files: StateFiles): Seq[(Long, String)] =
    if (!files.exists(".")) Nil
    else files.list(".")
      .collect { case name @ Directory(number, attempt) => (number.toLong, Option(attempt).fold(1L)(_.toLong), name) }
      .sortBy(found => (found._1, found._2))
      .reverse
      .map { case (number, _, name) => (number, name) }

  /** @param path of its `_metadata`, relative to the `ckpt` directory */
  private final case class Checkpoint(number: Long, version: Long, path: String)

  private def storeOf(batch: JsonNode, id: StateStoreId): Option[JsonNode] = batch.path("stores").elements().asScala
    .find(s => s.path("operator_id").asLong() == id.operatorId && s.path("store").asText() == id.storeName)

  /** As `spark_ckpt.coordinator.compose.operator_id_of`. */
  private def operatorIdOf(batch: JsonNode, id: StateStoreId): Array[Byte] =
    MessageDigest.getInstance("SHA-256")
      .digest(s"${batch.path("query_id").asText()}/${id.operatorId}/${id.storeName}".getBytes(UTF_8))
      .take(16)
}
