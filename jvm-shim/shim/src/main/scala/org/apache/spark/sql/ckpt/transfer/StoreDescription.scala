// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.transfer

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.ckpt.families.{ColumnFamily, PartitionKey}
import org.apache.spark.sql.execution.streaming.state._

/**
 * A store of a stateful operator, by Spark's own files.
 *
 * @param operator           Spark's short name of the operator
 * @param partitions         number of partitions that have the store
 * @param families           column families, with those that only earlier schemas have
 * @param stateFormatVersion state format version of a join, else None
 * @param stateIds           state id per partition; None in checkpoint format 1
 * @param schemas            all schemas of an operator whose schemas may change
 */
private[transfer] final case class StoreDescription(
    operatorId: Long,
    operator: String,
    store: String,
    partitions: Int,
    families: Seq[ColumnFamily],
    stateFormatVersion: Option[Int],
    stateIds: Option[Seq[String]],
    schemas: Option[StateSchemaMetadata]) {

  def usesColumnFamilies: Boolean = families.exists(_.name != StateStore.DEFAULT_COL_FAMILY_NAME)

  /** The family that every store is created with; a placeholder if the operator has none of its own. */
  def default: ColumnFamily = families.find(_.name == StateStore.DEFAULT_COL_FAMILY_NAME).getOrElse {
    val any = families.head
    ColumnFamily(StateStore.DEFAULT_COL_FAMILY_NAME, any.keySchema, any.valueSchema,
      NoPrefixKeyStateEncoderSpec(any.keySchema), multiValue = false, isInternal = false)
  }

  /** The families besides the default one. */
  def named: Seq[ColumnFamily] = families.filter(_.name != StateStore.DEFAULT_COL_FAMILY_NAME)

  /** The families that may have rows: `transformWithState` describes a default family and never uses it. */
  def used: Seq[ColumnFamily] = if (PartitionKey.isTransformWithState(operator)) named else families

  /** True if the family of this name is the map of a `transformWithState`. */
  def isMap(name: String): Boolean =
    families.exists(family => family.name == name && family.encoder.isInstanceOf[PrefixKeyScanStateEncoderSpec])

  def stateIdOf(partition: Int): Option[String] = stateIds.map(_(partition))

  def storeId(location: String, partition: Int): StateStoreId =
    StateStoreId(new Path(location, "state").toString, operatorId, partition, store)

  override def toString: String = s"operator $operatorId ($operator), store $store"
}
