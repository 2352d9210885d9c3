// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.transfer

import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.ckpt.families.PartitionKey
import org.apache.spark.sql.ckpt.files.StateFiles
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.NullType

/**
 * Operators of a checkpoint location without operator metadata, which Spark before 4.0 did not write. Their stores and
 * the schemas of their rows identify them. `applyInPandasWithState` has the schemas of `flatMapGroupsWithState`.
 *
 * @param files the directory `state` of the location
 */
private[transfer] final class UnnamedOperators(files: StateFiles) {

  /** @throws CheckpointFailure if the operator is unknown */
  def metadata(operatorId: Long): OperatorStateMetadata = {
    val partitions = files.list(operatorId.toString).flatMap(_.toIntOption).size
    val named = LocationStores.JoinStores.filter(store =>
      files.exists(UnnamedOperators.schemaFile(operatorId, store)))
    val default = UnnamedOperators.schemaFile(operatorId, StateStoreId.DEFAULT_STORE_NAME)
    if (named.nonEmpty) {
      OperatorStateMetadataV1(OperatorInfoV1(operatorId, PartitionKey.Join),
        named.map(StateStoreMetadataV1(_, 0, partitions)).toArray)
    } else if (files.exists(default)) {
      val schema = StateSchemaCompatibilityChecker.readSchemaFile(files.open(default)).head
      val (name, prefixColumns) = UnnamedOperators.of(schema)
      OperatorStateMetadataV1(OperatorInfoV1(operatorId, name),
        Array(StateStoreMetadataV1(StateStoreId.DEFAULT_STORE_NAME, prefixColumns, partitions)))
    } else {
      throw new CheckpointFailure("StateSchemaError",
        s"operator $operatorId has neither metadata nor a schema: ${files.path(default)} is missing")
    }
  }
}

private[transfer] object UnnamedOperators {

  /** Schema file of a store in version 1 of the operator metadata, relative to the directory `state`. */
  def schemaFile(operatorId: Long, store: String): String = {
    val partition = s"$operatorId/${StateStore.PARTITION_ID_TO_CHECK_SCHEMA}"
    val directory = if (store == StateStoreId.DEFAULT_STORE_NAME) partition else s"$partition/$store"
    s"$directory/_metadata/schema"
  }

  /** Spark's short name of the operator with this schema, and the number of key columns that it scans by. */
  private def of(schema: StateStoreColFamilySchema): (String, Int) = {
    val key = schema.keySchema.fieldNames.toSeq
    val value = schema.valueSchema.fieldNames.toSeq
    if (value == Seq("__dummy__")) ("dedupe", 0)
    else if (value == Seq("expiresAtMicros")) ("dedupeWithinWatermark", 0)
    else if (key == Seq("key") && value == Seq("value") && schema.keySchema.head.dataType == NullType)
      ("globalLimit", 0)
    else if (key.lastOption.contains("sessionStartTime")) ("sessionWindowStateStoreSaveExec", key.length - 1)
    else if (value.headOption.contains("groupState")) ("flatMapGroupsWithState", 0)
    else ("stateStoreSave", 0)
  }
}
