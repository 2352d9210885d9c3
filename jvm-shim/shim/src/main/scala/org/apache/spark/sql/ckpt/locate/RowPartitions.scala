// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.locate

import io.github.sparkckpt.engine.segment.RowFilter
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.ckpt.compat.KeyEncoders
import org.apache.spark.sql.ckpt.families.{ColumnFamily, KeyGroupOfRow}
import org.apache.spark.sql.ckpt.files.StateFiles
import org.apache.spark.sql.ckpt.protocol.SegmentRef
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType

/**
 * Partitions of rows, which separate subtasks that share key groups. Needed only after a rescale to a number of
 * partitions that does not divide the number of key groups.
 *
 * Rows are separated during loading, before an operator has described its column families. So their schemas come from
 * Spark's own schema files.
 *
 * @param default the family that every store has
 */
private[ckpt] final class RowPartitions(storeId: StateStoreId, default: ColumnFamily, hadoopConf: Configuration) {

  /** Rows of a segment that count. */
  def filter(found: StateLocation, segment: SegmentRef): RowFilter =
    if (segment.filters.isEmpty) RowFilter.All else new PartitionedRows(segment.filters, partitionOf(found))

  private def partitionOf(found: StateLocation)(family: String, parallelism: Int): PartitionOfKey = {
    val described = familyOf(family)
    KeyGroupOfRow
      .partition(parallelism, found.operator, storeId.storeName, family, described.keySchema,
        found.stateFormatVersion, isMap)
      .map(PartitionOfKey.of(described.encoder.keySchema.length, _))
      .getOrElse(throw new CheckpointFailure("StateFileError",
        s"the partition of rows of column family '$family' of ${found.operator} is unknown, and $storeId " +
          "shares its key groups with other partitions"))
  }

  private def familyOf(family: String): ColumnFamily =
    if (family == default.name) default
    else recorded.getOrElse(family, throw new CheckpointFailure("StateFileError",
      s"Spark's state schemas in ${operator.directory} have no column family '$family', and $storeId has rows of it"))

  private def isMap(name: String): Boolean =
    recorded.get(name).exists(_.encoder.isInstanceOf[PrefixKeyScanStateEncoderSpec])

  private lazy val operator =
    new StateFiles(new Path(storeId.checkpointRootLocation, storeId.operatorId.toString), hadoopConf)

  /** Column families by name, from all schemas that the operator ever had, because segments are of any age. */
  private lazy val recorded: Map[String, ColumnFamily] = {
    val metadata = "_metadata/v2"
    val newest = if (operator.exists(metadata)) operator.list(metadata).flatMap(_.toLongOption).maxOption else None
    newest
      .flatMap(batch => OperatorStateMetadataUtils.readMetadata(operator.open(s"$metadata/$batch"), 2))
      .collect { case operator: OperatorStateMetadataV2 => operator.stateStoreInfo.toSeq }
      .getOrElse(Nil)
      .filter(_.storeName == storeId.storeName)
      .flatMap(_.stateSchemaFilePaths)
      // The recorded paths are absolute, and the location may have moved.
      .map(path => s"_stateSchema/${storeId.storeName}/${new Path(path).getName}")
      .filter(operator.exists)
      .flatMap(name => StateSchemaCompatibilityChecker.readSchemaFile(operator.open(name)))
      .map(schema => schema.colFamilyName -> RowPartitions.familyOf(schema))
      .toMap
  }
}

private object RowPartitions {
  private def familyOf(schema: StateStoreColFamilySchema): ColumnFamily = {
    val encoder = schema.keyStateEncoderSpec.getOrElse(NoPrefixKeyStateEncoderSpec(schema.keySchema))
    // Schema files of a join include the timestamp, which is not part of the operator's key.
    val keySchema = if (KeyEncoders.addsTimestamp(encoder)) StructType(encoder.keySchema.init) else schema.keySchema
    ColumnFamily(schema.colFamilyName, keySchema, schema.valueSchema, encoder, multiValue = false, isInternal = false)
  }
}
