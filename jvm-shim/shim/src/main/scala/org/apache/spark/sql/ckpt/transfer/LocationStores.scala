// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.transfer

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.ckpt.compat.KeyEncoders
import org.apache.spark.sql.ckpt.families.{ColumnFamily, PartitionKey}
import org.apache.spark.sql.ckpt.files.StateFiles
import org.apache.spark.sql.ckpt.protocol.Message
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType

/**
 * The stores of a checkpoint location, by Spark's operator metadata and schema files.
 *
 * @param conf settings of the batch
 */
private[transfer] final class LocationStores(source: SourceState, conf: SQLConf, hadoopConf: Configuration) {
  private val directory = new Path(source.location, "state")
  private val files = new StateFiles(directory, hadoopConf)

  /**
   * All stores, by operator and name.
   *
   * @throws CheckpointFailure if a file is missing or damaged
   */
  def all: Seq[StoreDescription] =
    try numbers("").sorted.flatMap { operatorId =>
      val metadata = metadataOf(operatorId)
      val partitions = source.partitions.getOrElse(operatorId, numbers(operatorId.toString).size)
      storesOf(metadata).sortBy(_.storeName).map(describe(metadata, _, partitions))
    } catch {
      case e: CheckpointFailure => throw e
      case NonFatal(e) => throw new CheckpointFailure("StateSchemaError",
        s"Spark's metadata and schemas of the operators in $directory cannot be read: $e", e)
    }

  private def describe(
      metadata: OperatorStateMetadata,
      store: StateStoreMetadata,
      partitions: Int): StoreDescription = {
    val operator = metadata.operatorInfo
    val name = operator.operatorName
    val format =
      if (name == PartitionKey.Join) Some(conf.getConf(SQLConf.STREAMING_JOIN_STATE_FORMAT_VERSION)) else None
    val paths = schemaFiles(operator.operatorId, store)
    val families = paths
      .flatMap(path => StateSchemaCompatibilityChecker.readSchemaFile(files.open(path)))
      .map(schema => schema.colFamilyName -> schema)
      .toMap // of the newest file that has the family
      .values.toSeq.sortBy(_.colFamilyName)
      .map(familyOf(_, store.numColsPrefixKey, listsOf(metadata, format)))
    if (families.isEmpty) {
      throw new CheckpointFailure("StateSchemaError",
        s"operator ${operator.operatorId} ($name), store ${store.storeName}: no column family in " +
          paths.map(files.path(_).toString).mkString(", "))
    }
    val schemas = Option.when(PartitionKey.isTransformWithState(name))(
      StateSchemaMetadata.createStateSchemaMetadata(
        directory.toString, hadoopConf, paths.map(files.path(_).toString).toList))
    val ids = source.stateIds.map(idsOf(_, operator.operatorId, store.storeName, partitions))
    StoreDescription(operator.operatorId, name, store.storeName, partitions, families, format, ids, schemas)
  }

  // ---- operators ----

  /** Spark before 4.0 writes no metadata of operators; then the stores and their schemas tell the operator. */
  private def metadataOf(operatorId: Long): OperatorStateMetadata = {
    val versioned = s"$operatorId/_metadata/v2"
    val newest =
      if (files.exists(versioned)) files.list(versioned).flatMap(_.toLongOption).filter(_ <= source.batchId).maxOption
      else None
    val first = s"$operatorId/_metadata/metadata"
    newest match {
      case Some(batch) => read(s"$versioned/$batch", 2)
      case None if files.exists(first) => read(first, 1)
      case None => new UnnamedOperators(files).metadata(operatorId)
    }
  }

  private def read(path: String, version: Int): OperatorStateMetadata =
    OperatorStateMetadataUtils.readMetadata(files.open(path), version).getOrElse(
      throw new CheckpointFailure("StateSchemaError", s"${files.path(path)} describes no operator"))

  private def storesOf(metadata: OperatorStateMetadata): Seq[StateStoreMetadata] = metadata match {
    case first: OperatorStateMetadataV1 => first.stateStoreInfo.toSeq
    case second: OperatorStateMetadataV2 => second.stateStoreInfo.toSeq
  }

  /** Families whose values are lists. */
  private def listsOf(metadata: OperatorStateMetadata, joinFormat: Option[Int]): String => Boolean = metadata match {
    case operator: OperatorStateMetadataV2 if PartitionKey.isTransformWithState(operator.operatorInfo.operatorName) =>
      // `TransformWithStateOperatorProperties`
      Message.mapper.readTree(operator.operatorPropertiesJson).path("stateVariables").elements().asScala
        .filter(_.path("stateVariableType").asText() == "ListState")
        .map(_.path("stateName").asText()).toSet
    case _ => _ => joinFormat.exists(_ >= LocationStores.JoinFormatWithLists)
  }

  // ---- schemas ----

  /** Schema files of a store, the newest last, relative to the directory. */
  private def schemaFiles(operatorId: Long, store: StateStoreMetadata): Seq[String] = store match {
    case versioned: StateStoreMetadataV2 =>
      // The recorded paths are absolute, and the location may have moved.
      versioned.stateSchemaFilePaths.map(path =>
        s"$operatorId/_stateSchema/${store.storeName}/${new Path(path).getName}")
    case _ => Seq(UnnamedOperators.schemaFile(operatorId, store.storeName))
  }

  private def familyOf(
      schema: StateStoreColFamilySchema,
      prefixColumns: Int,
      isList: String => Boolean): ColumnFamily = {
    val name = schema.colFamilyName
    val encoder = schema.keyStateEncoderSpec.getOrElse(
      if (prefixColumns > 0) PrefixKeyScanStateEncoderSpec(schema.keySchema, prefixColumns)
      else NoPrefixKeyStateEncoderSpec(schema.keySchema))
    // The stored keys of a join may include a timestamp, which is not part of the operator's key.
    val keySchema = if (KeyEncoders.addsTimestamp(encoder)) StructType(encoder.keySchema.init) else schema.keySchema
    val isDefault = name == StateStore.DEFAULT_COL_FAMILY_NAME
    ColumnFamily(name, keySchema, schema.valueSchema, encoder, !isDefault && isList(name), name.startsWith("$"))
  }

  // ---- partitions ----

  private def idsOf(
      ids: Map[Long, Seq[Seq[String]]],
      operatorId: Long,
      store: String,
      partitions: Int): Seq[String] = {
    val perPartition = ids.getOrElse(operatorId, Nil)
    if (perPartition.size != partitions) {
      throw new CheckpointFailure("StateIdMismatchError",
        s"operator $operatorId has $partitions partitions in ${files.path(operatorId.toString)}, but commit " +
          s"${source.batchId} names ${perPartition.size}")
    }
    // One id per store, in the order of `SymmetricHashJoinStateManager.allStateStoreNames`, or one for all.
    perPartition.map(stores => if (stores.size == 1) stores.head else stores(LocationStores.JoinStores.indexOf(store)))
  }

  private def numbers(path: String): Seq[Long] = files.list(if (path.isEmpty) "." else path).flatMap(_.toLongOption)
}

private[transfer] object LocationStores {
  /** Joins keep lists of rows since this state format version. */
  private val JoinFormatWithLists = 4

  val JoinStores: Seq[String] =
    Seq("left-keyToNumValues", "left-keyWithIndexToValue", "right-keyToNumValues", "right-keyWithIndexToValue")
}
