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

import org.apache.spark.sql.execution.streaming.state._

/**
 * The column families of a store that Spark has described, and the rules for their names, with the errors of Spark's
 * `RocksDBStateStoreProvider`. They are known from one batch to the next: what a batch that is undone has described has
 * no rows.
 *
 * @param valuesOf encoding of the values of a family
 * @param useColumnFamilies true if the operator may make families beside the default one
 */
private[ckpt] final class ColumnFamilies(
    val useColumnFamilies: Boolean,
    valuesOf: ColumnFamily => ValueEncoding,
    default: ColumnFamily) {

  @volatile private var described = Map(default.name -> default)

  def all: Iterable[ColumnFamily] = described.values

  /** For one store: the task of another one may have been given up and still run. */
  def newValueEncoding(family: ColumnFamily): ValueEncoding = valuesOf(family)

  /** The family to do something with, by its name. */
  def get(operation: String, name: String): ColumnFamily =
    described.getOrElse(name, {
      checkUsed(operation)
      checkName(operation, name)
      throw StateStoreErrors.unsupportedOperationOnMissingColumnFamily(operation, name)
    })

  /** True if the rows of a family count as rows of state; also of one that was loaded and not described yet. */
  def countsRows(name: String): Boolean =
    described.get(name).fold(!name.startsWith(ColumnFamilies.InternalMark))(!_.isInternal)

  /** True if a state variable of a `transformWithState` is a map: no other one is scanned by prefix. */
  def isMap(name: String): Boolean =
    described.get(name).exists(_.encoder.isInstanceOf[PrefixKeyScanStateEncoderSpec])

  /** Takes a description; false if it is known already. */
  def add(family: ColumnFamily): Boolean = {
    val isNew = !described.get(family.name).contains(family)
    if (isNew) described += family.name -> family
    isNew
  }

  def remove(name: String): Unit = described -= name

  /** Checks that a family of this name may be made or removed. */
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
