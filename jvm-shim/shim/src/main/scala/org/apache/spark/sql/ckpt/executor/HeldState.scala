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

import java.io.IOException

import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.{CheckpointFailure, CheckpointStateStoreProvider, RestoreCost, StoreUsageFailure}
import org.apache.spark.sql.ckpt.backend._
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.streaming.state.StateStoreId

/**
 * The state of one store that is in memory, if there is any: a keyed state backend, and the ids under which the
 * coordinator knows the versions in it.
 *
 * Threads: the provider's lock orders all calls; only `epoch` may be asked for without it.
 *
 * @param logsWrites whether deltas have every write of a batch
 */
private[ckpt] final class HeldState(
    storeId: StateStoreId,
    families: FamilySchemas,
    files: StateFiles,
    partitions: RowPartitions,
    logsWrites: Boolean)
    extends Logging {

  private var held: HashMapStateBackend = _
  private var location: StateLocation = _

  /** Ids of the states in the backend: of its folded version, and of the committed version that is not folded yet. */
  private var foldedId = ""
  private var committedId: Option[String] = None

  /** The committed version while the version before it is open once more, and the id of its state. */
  private var aside: Option[(SetAsideChanges, String)] = None

  /** Moves on whenever a store that was handed out before must not be used any more. */
  @volatile private var moved = 0L

  def epoch: Long = moved

  def isEmpty: Boolean = held == null

  /** The backend, null if nothing is in memory. */
  def backend: HashMapStateBackend = held

  /** Id of the state that an open or committed batch has started from, empty at version 0. */
  def baseId: String = foldedId

  /** Whether there is a committed version that is not folded yet. */
  def hasCommitted: Boolean = committedId.isDefined

  /** Whether the open batch is one that has been committed before. */
  def isRepeated: Boolean = aside.isDefined

  /** Whether this version is the folded one. */
  def isAt(version: Long): Boolean = !isEmpty && held.foldedVersion == version

  /** Id of the state of a version, if that is in memory. */
  def idOf(version: Long): Option[String] =
    if (isEmpty) None
    else if (version == held.foldedVersion) Some(foldedId)
    else if (version == held.foldedVersion + 1) committedId.orElse(aside.map(_._2))
    else None

  /** Whether what is in memory of a version is this state, in the same key groups. */
  def matches(version: Long, found: StateLocation): Boolean =
    idOf(version).contains(found.stateId) && java.util.Arrays.equals(location.factors, found.factors)

  // ---- loading ----

  /**
   * Replaces everything by the state of a version.
   *
   * @throws CheckpointFailure if a file cannot be read; then nothing is in memory
   */
  def load(version: Long, found: StateLocation): RestoreCost = {
    committedId = None
    aside = None
    held = new HashMapStateBackend(new KeyGroupNumbering(found.factors).maxParallelism, logsWrites)
    read(version, found)(held.restore(version, found.rows, _, _))
  }

  /** Brings the folded version to a later one by deltas, the segments of the location. Fails as [[load]] does. */
  def advance(version: Long, found: StateLocation): RestoreCost =
    read(version, found)(held.applyDeltas(version, _, _))

  private def read(version: Long, found: StateLocation)(
      restore: (Seq[StateSegment], RestoreFilter) => Unit): RestoreCost = {
    val start = System.nanoTime()
    moved += 1
    location = found
    val segments = new OpenSegments(found, files, partitions)
    try restore(segments.open(), RestoreFilter.range(0, held.maxParallelism - 1)) catch {
      case e: OutOfMemoryError =>
        throw QueryExecutionErrors.notEnoughMemoryToLoadStore(
          storeId.toString, classOf[CheckpointStateStoreProvider].getSimpleName, e)
      case e: StateStreamCorruptException => throw unreadable(version, e)
      case e: IOException => throw unreadable(version, e)
    } finally {
      segments.close()
    }
    families.all.foreach(schema => held.declareFamily(specOf(schema)))
    foldedId = found.stateId
    val cost = RestoreCost(System.nanoTime() - start, segments.bytesRead, found.segments.size)
    if (version > 0) {
      logInfo(s"loaded version $version of $storeId: ${cost.segments} segments, ${cost.bytes} bytes, " +
        s"${held.rowCount} rows, ${cost.nanos / 1000000} ms")
    }
    cost
  }

  /** Leaves nothing half-loaded behind, so that the next attempt starts from the files again. */
  private def unreadable(version: Long, cause: Exception): CheckpointFailure = {
    held = null
    new CheckpointFailure("StateFileError",
      s"version $version of $storeId cannot be read from ${files.directory}: ${cause.getMessage}. " +
        "Restore the file, or go back to an older checkpoint ('spark-ckpt list' shows which there are)", cause)
  }

  // ---- from version to version ----

  /** Makes the committed version the folded one. */
  def fold(): Unit = {
    takeBack()
    held.fold()
    foldedId = committedId.getOrElse("")
    committedId = None
    moved += 1
  }

  /**
   * A version is opened again after its batch has committed: by a foreachBatch function that uses its DataFrame twice, or
   * by another attempt. What was committed is kept, since it is likely to be what counts.
   */
  def openForWrite(version: Long): Unit = {
    if (hasCommitted) aside = committedId.map((held.setAside(), _))
    committedId = None
    held.openForWrite(version)
    moved += 1
  }

  def discard(): Unit = {
    held.discard()
    takeBack()
    moved += 1
  }

  /** What the open batch has become counts, under this id. */
  def keepCommit(stateId: String): Unit = {
    committedId = Some(stateId)
    aside = None
  }

  /** What the open batch was to become does not count. The version before it is what the backend still has folded. */
  def forgetCommit(): Unit = {
    committedId = None
    held.discard()
    held.undoCommit()
    takeBack()
    moved += 1
  }

  /** The checkpoint of the committed version was aborted. A batch that is open stays: it is the next attempt's. */
  def forgetAborted(): Unit = {
    aside = None
    if (hasCommitted) {
      committedId = None
      held.undoCommit()
      moved += 1
    }
  }

  /** Makes what was set aside the committed version again, if nothing that counts has taken its place. */
  private def takeBack(): Unit = {
    if (committedId.isEmpty) aside.foreach { case (changes, id) =>
      held.putBack(changes)
      committedId = Some(id)
    }
    aside = None
  }

  /** Frees the memory. */
  def release(): Unit = {
    held = null
    moved += 1
  }

  // ---- column families ----

  /** A family at the folded version; one that was described and is not in that version has no rows. */
  def reader(schema: FamilySchema, version: Long): FamilyReader = {
    if (!isAt(version)) throw superseded(version)
    Option(held.reader(schema.name, version)).getOrElse(held.emptyReader(specOf(schema)))
  }

  /** A family in the open batch. */
  def family(schema: FamilySchema): KeyedFamily =
    Option(held.family(schema.name)).getOrElse(held.declareFamily(specOf(schema)))

  /** Makes a family in the open batch, or takes its new description; false if it is there as it is described. */
  def createFamily(definition: FamilyDefinition): Boolean = {
    val described = families.add(definition)
    described.foreach(schema => held.declareFamily(specOf(schema)))
    described.isDefined
  }

  def dropFamily(name: String): Boolean = {
    families.remove(name)
    held.dropFamily(name)
  }

  private def specOf(schema: FamilySchema): FamilySpec = schema.spec(KeyGroupOfRow.of(
    new KeyGroupNumbering(location.factors), location.operator, storeId.storeName, schema.name,
    schema.definition.keySchema, location.stateFormatVersion, storeId.partitionId, families.isMap))

  def superseded(version: Long): StoreUsageFailure = new StoreUsageFailure(
    s"version $version of $storeId was opened again by another attempt; this one was given up")

  // ---- figures ----

  /** Rows of the operator's state, without its indexes. */
  def stateRows: Long = if (isEmpty) 0 else held.rowCount(families.countsRows)

  def indexRows: Long = if (isEmpty) 0 else held.rowCount(!families.countsRows(_))

  def memoryBytes: Long = if (isEmpty) 0 else held.memoryBytes
}
