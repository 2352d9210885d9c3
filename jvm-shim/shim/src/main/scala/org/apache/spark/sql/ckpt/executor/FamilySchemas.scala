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
 * @param useColumnFamilies whether the operator may make families beside the default one
 */
private[ckpt] final class FamilySchemas(
    useColumnFamilies: Boolean,
    valuesOf: FamilyDefinition => ValueEncoding,
    default: FamilyDefinition) {

  @volatile private var schemas = Map(default.name -> new FamilySchema(default, valuesOf))

  def all: Iterable[FamilySchema] = schemas.values

  /** The family to do something with, by its name. */
  def get(operation: String, name: String): FamilySchema =
    schemas.getOrElse(name, {
      checkUsed(operation)
      checkName(operation, name)
      throw StateStoreErrors.unsupportedOperationOnMissingColumnFamily(operation, name)
    })

  /** Whether the rows of a family count as rows of state; also of one that was loaded and not described yet. */
  def countsRows(name: String): Boolean =
    schemas.get(name).fold(!name.startsWith(FamilySchemas.InternalMark))(!_.definition.isInternal)

  /** Whether a state variable of a `transformWithState` is a map: no other one is scanned by prefix. */
  def isMap(name: String): Boolean =
    schemas.get(name).exists(_.definition.encoder.isInstanceOf[PrefixKeyScanStateEncoderSpec])

  /** Takes a description; None if it is known already. */
  def add(definition: FamilyDefinition): Option[FamilySchema] = {
    val known = schemas.get(definition.name).exists(_.definition == definition)
    if (known) None
    else {
      val schema = new FamilySchema(definition, valuesOf)
      schemas += definition.name -> schema
      Some(schema)
    }
  }

  def remove(name: String): Unit = schemas -= name

  /** Whether a family of this name may be made or removed. */
  def checkChange(operation: String, name: String, isInternal: Boolean): Unit = {
    checkUsed(operation)
    checkName(operation, name)
    if (!isInternal && name == StateStore.DEFAULT_COL_FAMILY_NAME) {
      throw StateStoreErrors.cannotUseColumnFamilyWithInvalidName(operation, name)
    }
    if (!isInternal && name.startsWith(FamilySchemas.InternalMark)) {
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

private[ckpt] object FamilySchemas {
  private val InternalMark = "$"
}
