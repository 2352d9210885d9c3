// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.families

import org.apache.spark.sql.execution.streaming.state._

/**
 * Column families of a store, as Spark described them, and the rules for their names, with the errors of Spark's
 * `RocksDBStateStoreProvider`. Descriptions outlive their batch: a family described in an undone batch has no rows.
 *
 * @param valuesOf encoding of the values of a family
 * @param useColumnFamilies true if the operator may create families besides the default one
 */
private[ckpt] final class ColumnFamilies(
    val useColumnFamilies: Boolean,
    valuesOf: ColumnFamily => ValueEncoding,
    val default: ColumnFamily) {

  @volatile private var described = Map(default.name -> default)

  def all: Iterable[ColumnFamily] = described.values

  /** One per store: the task of another store may be abandoned and still run. */
  def newValueEncoding(family: ColumnFamily): ValueEncoding = valuesOf(family)

  /** The family of this name, for an operation. */
  def get(operation: String, name: String): ColumnFamily =
    described.getOrElse(name, {
      checkUsed(operation)
      checkName(operation, name)
      throw StateStoreErrors.unsupportedOperationOnMissingColumnFamily(operation, name)
    })

  /** True if a family's rows count as rows of state, even if it was loaded and not described yet. */
  def countsRows(name: String): Boolean =
    described.get(name).fold(!name.startsWith(ColumnFamilies.InternalMark))(!_.isInternal)

  /** True if a state variable of a `transformWithState` is a map: only maps are scanned by prefix. */
  def isMap(name: String): Boolean =
    described.get(name).exists(_.encoder.isInstanceOf[PrefixKeyScanStateEncoderSpec])

  /** Adds a description; false if it is known. */
  def add(family: ColumnFamily): Boolean = {
    val isNew = !described.get(family.name).contains(family)
    if (isNew) described += family.name -> family
    isNew
  }

  def remove(name: String): Unit = described -= name

  /** Checks that a family of this name may be created or removed. */
  def checkChange(operation: String, name: String, isInternal: Boolean): Unit = {
    checkUsed(operation)
    checkName(operation, name)
    if (!isInternal && name == StateStore.DEFAULT_COL_FAMILY_NAME) {
      throw StateStoreErrors.cannotUseColumnFamilyWithInvalidName(operation, name)
    }
    if (!isInternal && name.startsWith(ColumnFamilies.InternalMark)) {
      throw StateStoreErrors.cannotCreateColumnFamilyWithReservedChars(name)
    }
  }

  private def checkUsed(operation: String): Unit =
    if (!useColumnFamilies) {
      throw StateStoreErrors.unsupportedOperationException(
        operation, "multiple column families is disabled in CheckpointStateStoreProvider")
    }

  private def checkName(operation: String, name: String): Unit =
    if (name.isEmpty || name.trim != name) {
      throw StateStoreErrors.cannotUseColumnFamilyWithInvalidName(operation, name)
    }
}

private[ckpt] object ColumnFamilies {
  private val InternalMark = "$"
}
