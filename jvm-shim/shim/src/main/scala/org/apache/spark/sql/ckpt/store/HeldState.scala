// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import scala.concurrent.duration._
import scala.util.control.NonFatal

import io.github.sparkckpt.engine.backend.{KeyedStateBackend, KeyedTable, TableReader}
import io.github.sparkckpt.engine.pages.LocalStateException
import io.github.sparkckpt.engine.restore.LookupBudget
import io.github.sparkckpt.engine.segment.{RestoreFilter, StateSegment}
import io.github.sparkckpt.engine.table.KeyGroupFunction

import org.apache.spark.TaskKilledException
import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.common.{CheckpointFailure, StoreUsageFailure}
import org.apache.spark.sql.ckpt.families.{ColumnFamilies, ColumnFamily, KeyGroupNumbering, KeyGroupOfRow}
import org.apache.spark.sql.ckpt.files.StateFiles
import org.apache.spark.sql.ckpt.locate.{OpenSegments, RowPartitions, StateLocation}
import org.apache.spark.sql.execution.streaming.state.StateStoreId

/**
 * State of one store in memory, if any: a keyed state backend, and the coordinator's ids of its versions.
 *
 * Threads: the provider's turn orders all calls; `epoch` and the figures need none.
 *
 * @param newBackend creates an empty backend for a number of key groups
 * @param unreadable reports that a task cannot read a version, and tells the error to throw
 */
private[ckpt] final class HeldState(
    storeId: StateStoreId,
    families: ColumnFamilies,
    files: StateFiles,
    partitions: RowPartitions,
    newBackend: Int => KeyedStateBackend,
    unreadable: (Long, CheckpointFailure) => CheckpointFailure)
    extends Logging {

  @volatile private var held: KeyedStateBackend = _

  // Without its segments, which have the place of each block.
  private var location: StateLocation = _

  /** Segments of the last load, if that has left rows in them. */
  private var later = Option.empty[LaterSegments]

  /** Increases whenever stores that were handed out become invalid. */
  @volatile private var moved = 0L

  def epoch: Long = moved

  def isEmpty: Boolean = held == null

  /** The backend, null if nothing is in memory. */
  def backend: KeyedStateBackend = held

  /** Id of the state that an open or committed batch started from, empty at version 0. */
  def baseId: String = held.state.base.stateId

  /** True if a committed version is not folded yet. */
  def hasCommitted: Boolean = held.state.isCommitted

  /** True if the open batch was committed before. */
  def isRepeated: Boolean = held.state.isRepeated

  /** True if this version is the folded one. */
  def isAt(version: Long): Boolean = !isEmpty && !held.isBroken && held.foldedVersion == version

  /** Id of a version's state in memory, if any. State that the local disk has lost is none. */
  def idOf(version: Long): Option[String] =
    if (isEmpty || held.isBroken) None
    else if (version == held.foldedVersion) Some(baseId)
    else if (version == held.foldedVersion + 1) held.state.committedId
    else None

  /** True if memory has this state of the version, in the same key groups. */
  def matches(version: Long, found: StateLocation): Boolean =
    idOf(version).contains(found.stateId) && java.util.Arrays.equals(location.factors, found.factors)

  // ---- loading ----

  /**
   * Replaces everything with the state of a version, by the plan of its location.
   *
   * @throws org.apache.spark.sql.ckpt.common.CheckpointFailure if a file is unreadable; then memory is empty
   */
  def load(version: Long, found: StateLocation): RestoreCost = {
    close()
    held = newBackend(KeyGroupNumbering.of(found.factors).maxParallelism)
    location = found.copy(segments = Nil)
    // Before the rows come, so that each index is built once.
    families.all.foreach(declare)
    if (found.restore.isLazy && isOfSingleValues) {
      leave(version, found)
      RestoreCost.Nothing
    } else {
      restore(version, found)
    }
  }

  private def restore(version: Long, found: StateLocation): RestoreCost = {
    val byKeyGroup = !found.restore.isBySegment && isOfSingleValues
    val cost = read(version, found, byKeyGroup)(held.restore(version, found.rows, _, _, found.stateId))
    if (!byKeyGroup || held.rowCount == found.rows) {
      cost
    } else {
      logWarning(s"version $version of $storeId has ${found.rows} rows by its checkpoint, but ${held.rowCount} " +
        "were loaded by key group; it is loaded once more, file by file")
      cost + read(version, found)(held.restore(version, found.rows, _, _, found.stateId))
    }
  }

  /** True for one column family without lists: only its rows can be loaded by key group or alone, and counted. */
  private def isOfSingleValues: Boolean = !families.useColumnFamilies && families.all.forall(!_.multiValue)

  /** Leaves the rows in their segments. */
  private def leave(version: Long, found: StateLocation): Unit = {
    moved += 1
    val segments = new LaterSegments(storeId, version, found, files, partitions, unreadable(version, _))
    later = Some(segments)
    val plan = found.restore
    held.restoreLater(
      version, found.rows, segments, LookupBudget(plan.budget, plan.rowCost, plan.keyGroupCost), found.stateId)
    logInfo(s"opened version $version of $storeId: its ${found.rows} rows are loaded when they are wanted")
  }

  /** True if rows are still in their segments. */
  def isPending: Boolean = !isEmpty && held.isPending

  /** True if the state in memory is incomplete, and cannot be used. */
  def isBroken: Boolean = !isEmpty && held.isBroken

  /** Loads the rest. If it cannot be read, the state is broken: the load that follows tells why. */
  def loadRest(): Unit = if (isPending) {
    try held.loadRest() catch {
      case e: TaskKilledException => throw e
      case NonFatal(e) => logWarning(s"rows of $storeId cannot be loaded; all of them are loaded anew", e)
    }
  }

  /**
   * Loads the rest in the background.
   *
   * @param isWanted false once the store was unloaded
   */
  def loadRestLater(isWanted: () => Boolean): Unit =
    if (isPending) {
      LaterLoads.here.add(storeId.toString, held, location.restore.restAfterMs.millis, isWanted)
    }

  /** Cost of rows that were loaded later, since the last call. */
  def takeLaterCost(): RestoreCost = {
    val isDone = !isPending
    val cost = later.fold(RestoreCost.Nothing)(_.takeCost())
    // Its segments have the place of each block.
    if (isDone) later = None
    cost
  }

  /** Advances the folded version by deltas, the segments of the location. Fails as [[load]] does. */
  def advance(version: Long, found: StateLocation): RestoreCost =
    read(version, found)(held.applyDeltas(version, _, _, found.stateId))

  private def read(version: Long, found: StateLocation, byKeyGroup: Boolean = false)(
      restore: (Seq[StateSegment], RestoreFilter) => Unit): RestoreCost = {
    val start = System.nanoTime()
    moved += 1
    location = found.copy(segments = Nil)
    val segments = new OpenSegments(found, files, partitions, byKeyGroup)
    try restore(segments.open(), RestoreFilter.range(0, held.maxParallelism - 1)) catch {
      case e: OutOfMemoryError => throw LoadFailures.outOfMemory(storeId, e)
      case e: LocalStateException =>
        close()
        throw e
      case e: Throwable if LoadFailures.isKnown(e) =>
        // Drops half-loaded state, so that the next attempt starts from the files.
        close()
        throw LoadFailures.of(s"version $version of $storeId", files.directory.toString, e)
    } finally {
      segments.close()
    }
    families.all.foreach(declare)
    val cost = RestoreCost(System.nanoTime() - start, segments.bytesRead, found.segments.size)
    if (version > 0) {
      logInfo(s"loaded version $version of $storeId: ${cost.segments} segments, ${cost.bytes} bytes, " +
        s"${held.rowCount} rows, ${cost.nanos / 1000000} ms")
    }
    cost
  }

  // ---- from version to version ----

  /** Folds the committed version, even while the version before it is open again. */
  def fold(): Unit = {
    if (isRepeated) held.discard()
    held.fold()
    moved += 1
  }

  /**
   * A version is opened again after its batch was committed, by a foreachBatch function that uses its DataFrame twice
   * or by another attempt. The committed changes stay, because they probably count.
   */
  def openForWrite(version: Long): Unit = {
    if (isAt(version)) held.reopen() else held.openForWrite(version)
    moved += 1
  }

  def discard(): Unit = {
    held.discard()
    moved += 1
  }

  /** Ends the open batch, under the id of its state. */
  def commit(stateId: String): Unit = held.commit(stateId)

  /** The committed batch counts. */
  def keepCommit(): Unit = held.dropKept()

  /** The batch does not count. The backend still has the previous version folded. */
  def forgetCommit(): Unit = {
    if (held.isOpen) held.discard() else held.undoCommit()
    moved += 1
  }

  /** The checkpoint of the committed version was aborted. An open batch stays: it belongs to the next attempt. */
  def forgetAborted(): Unit = {
    held.dropKept()
    if (held.undoCommit()) moved += 1
  }

  /** Moves state to the local disk, if all stores of the JVM exceed their budget together. */
  def evict(): Unit = if (!isEmpty) held.evict()

  /** Frees the memory. */
  def release(): Unit = {
    close()
    moved += 1
  }

  private def close(): Unit = {
    val old = held
    held = null
    later = None
    if (old != null) old.close()
  }

  // ---- column families ----

  /** A family at the folded version. A described family that the version lacks has no rows. */
  def reader(family: ColumnFamily, version: Long): TableReader = {
    if (!isAt(version)) throw superseded(version)
    Option(held.reader(family.name, version)).getOrElse(
      held.emptyReader(family.name, keyGroupsOf(family), family.newAccess(), family.multiValue))
  }

  /** A family in the open batch. */
  def table(family: ColumnFamily): KeyedTable = Option(held.table(family.name)).getOrElse(declare(family))

  /**
   * Creates a family, or takes its new description; false if it exists as described. Without state in memory, the next
   * load declares it.
   */
  def createFamily(family: ColumnFamily): Boolean = {
    val isNew = families.add(family)
    if (isNew && !isEmpty) declare(family)
    isNew
  }

  def dropFamily(name: String): Boolean = {
    families.remove(name)
    held.dropFamily(name)
  }

  private def declare(family: ColumnFamily): KeyedTable =
    held.declareFamily(family.name, keyGroupsOf(family), family.newAccess(), family.multiValue)

  private def keyGroupsOf(family: ColumnFamily): KeyGroupFunction = {
    val found = location
    family.keyGroups(KeyGroupOfRow.of(
      KeyGroupNumbering.of(found.factors), found.operator, storeId.storeName, family.name, family.keySchema,
      found.stateFormatVersion, storeId.partitionId, families.isMap))
  }

  def superseded(version: Long): StoreUsageFailure = new StoreUsageFailure(
    s"version $version of $storeId was opened by a newer attempt; this one was abandoned")

  // ---- figures, from any thread ----

  /** Rows of the operator's state, without its indexes. */
  def stateRows: Long = figure(_.rowCount(families.countsRows))

  def indexRows: Long = figure(_.rowCount(!families.countsRows(_)))

  def memoryBytes: Long = figure(_.memoryBytes)

  /** Bytes of state on the local disk. */
  def localBytes: Long = figure(_.localBytes)

  private def figure(of: KeyedStateBackend => Long): Long = {
    val now = held
    if (now == null) 0 else of(now)
  }
}
