// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

import java.io.OutputStream

import io.github.sparkckpt.engine.compaction.BaseSnapshot
import io.github.sparkckpt.engine.restore.{LookupBudget, StoredSegments}
import io.github.sparkckpt.engine.segment.{RestoreFilter, SegmentBuffer, SegmentBytes, SegmentInfo, StateSegment}
import io.github.sparkckpt.engine.table.{KeyAccess, KeyGroupFunction}

/**
 * The keyed state of one store of one subtask, with versions: the seam for other backends than [[HashMapStateBackend]].
 *
 * The state is at the ''folded'' version, plus the changes of one batch:
 *
 *  - `openForWrite(v)` starts a batch on version v; puts and removes go to a write buffer;
 *  - `writeDelta` / `deltaBytes` give the batch's changes as a delta segment;
 *  - `commit()` makes the buffer version v + 1. The changes are applied when the next batch opens version v + 1.
 *    Opening v again instead drops them;
 *  - `discard()` drops an open batch;
 *  - `reopen()` reopens v and keeps the committed changes, in case the new batch does not count.
 *
 * Which of these has happened is the [[StoreState]].
 *
 * A batch that ends without a commit retires its tables; the next batch has new ones on the same state. An abandoned
 * task that still writes, perhaps from its own thread, therefore never reaches the next attempt.
 *
 * ==Threads== One thread at a time, the caller orders them (happens-before included). With one exception:
 * `snapshotBase` may run in any thread at any time. It waits for a change of the folded state, such as `fold`; a batch
 * does not touch that. A [[BaseSnapshot]] is then written and closed by any one thread, at any time.
 */
trait KeyedStateBackend {

  /** Number of key groups. */
  def maxParallelism: Int

  /** The version in the tables, and the batch on top of it. */
  def state: StoreState

  /** Version of the tables; -1 without one, after a failed restore or fold. New backends have 0. */
  def foldedVersion: Long = state.base.version

  /** The newest version that can be opened: the committed one if it is not folded yet, else the folded one. */
  def version: Long = if (state.isCommitted) foldedVersion + 1 else foldedVersion

  /** True if a batch is open (between `openForWrite` and `commit` or `discard`). */
  def isOpen: Boolean = state.isOpen

  /** True if `openForWrite(v)` and `reader(_, v)` are possible without a restore. */
  def canServe(v: Long): Boolean

  /**
   * Opens a batch on version `v`. Discards an open batch first. Folds if `v` is committed but not folded; drops the
   * committed changes if `v` is the version before them.
   *
   * @throws IllegalStateException if this backend does not have version `v`, see [[canServe]]
   */
  def openForWrite(v: Long): Unit

  /**
   * Opens another batch on the folded version and keeps the committed changes on top of it: `discard`, or `undoCommit`
   * of the new batch, makes them the committed ones again. Discards an open batch first. Without committed changes this
   * is `openForWrite` of the folded version.
   *
   * @throws IllegalStateException if there is no state
   */
  def reopen(): Unit

  /**
   * Ends the open batch as the next version, which it returns. The changes stay readable, also as a delta.
   *
   * @param stateId id of the state that the changes lead to
   * @throws IllegalStateException if no batch is open
   */
  def commit(stateId: String = ""): Long

  /** Drops the changes that the committed ones have replaced, or that the open batch may replace. */
  def dropKept(): Unit

  /** Ends the open batch without a trace, if there is one. */
  def discard(): Unit

  /**
   * Drops the committed version that is not folded yet; false if there is none. Changes that it replaced become the
   * committed ones again.
   */
  def undoCommit(): Boolean

  /**
   * Applies the committed changes to the tables, if any, O(changes). After a failure (out of memory) the backend is
   * empty at version -1.
   */
  def fold(): Unit

  /**
   * The table of a column family, created if absent, in the open batch or between batches. A restored family becomes
   * usable here: this builds the index for its [[KeyAccess]]. A repeated declaration with the same kind of access takes
   * the new functions at no cost.
   *
   * @param keyGroups key group of a new key
   * @param access access to keys
   * @param multiValue true if a value is a list of rows
   * @throws IllegalArgumentException if existing rows have the other setting of `multiValue`
   * @throws IllegalStateException if the access changes after the open batch has written to the family
   */
  def declareFamily(
      name: String,
      keyGroups: KeyGroupFunction,
      access: KeyAccess = KeyAccess.Point,
      multiValue: Boolean = false): KeyedTable

  /**
   * Drops a family in the open batch; an undone batch restores it. False if there is none of this name. O(rows): the
   * delta names each removed key.
   *
   * @throws IllegalStateException if no batch is open
   */
  def dropFamily(name: String): Boolean

  /** The table of a family in the open or last committed batch, null if there is none. */
  def table(name: String): KeyedTable

  /** Names of the families in the open or last committed batch. */
  def familyNames: Set[String]

  /**
   * A reader of a family at the folded or the last committed version, null if the version has no such family.
   *
   * @throws IllegalStateException if this backend does not have version `v`
   */
  def reader(name: String, v: Long): TableReader

  /** A reader of a family that no version has. */
  def emptyReader(name: String, keyGroups: KeyGroupFunction, access: KeyAccess, multiValue: Boolean): TableReader

  /** Rows in all families, including the changes of the open or committed batch. */
  def rowCount: Long = rowCount(_ => true)

  /** Rows in the families of these names. */
  def rowCount(of: String => Boolean): Long

  /** New keys of the open or committed batch, and keys with a new value. */
  def rowsUpdated: Long

  /** Keys of the folded version that the open or committed batch has removed. */
  def rowsRemoved: Long

  /** Bytes of memory that tables, indexes and buffers use. From any thread: an estimate while a batch is written. */
  def memoryBytes: Long

  /** Bytes of state on the local disk. From any thread, as [[memoryBytes]]. */
  def localBytes: Long

  /**
   * True if an error on the local disk may have lost state, or rows could not be loaded later: then no version can be
   * served. From any thread.
   */
  def isBroken: Boolean

  /**
   * Moves state to the local disk if all states of the JVM together exceed their budget of memory. A task may read and
   * write the open batch meanwhile.
   */
  def evict(): Unit

  /** Gives up the state and its local files, except what snapshots still need. */
  def close(): Unit

  /** Approximate bytes of [[writeDelta]], not less than the actual number. O(changes). */
  def deltaSize: Long

  /**
   * Writes the changes of the open or last committed batch. Only before the next `openForWrite` or
   * `fold`. The stream is not closed.
   */
  def writeDelta(out: OutputStream): SegmentInfo

  /**
   * The changes of the open or last committed batch in memory.
   *
   * @throws StateTooLargeException above 1 GiB: use [[writeDelta]]
   */
  def deltaBytes(): SegmentBytes = {
    val buffer = new SegmentBuffer(deltaSize)
    val info = writeDelta(buffer)
    SegmentBytes(info, buffer.toArray)
  }

  /**
   * A consistent view of the state at [[foldedVersion]], for another thread to write while batches continue. It must be
   * closed.
   */
  def snapshotBase(): BaseSnapshot

  /**
   * Replaces everything with the segments' contents: bases first, then deltas, oldest first. Declared families stay
   * declared. After a failure the backend is empty at version -1.
   *
   * @param version version of this state
   * @param expectedRows approximate number of rows, 0 if unknown; sizes the index of a store with one family
   * @param stateId id of this state
   * @throws StateStreamDamagedException if a block was changed after it was written
   */
  def restore(
      version: Long,
      expectedRows: Long,
      segments: Seq[StateSegment],
      filter: RestoreFilter,
      stateId: String = ""): Unit

  /**
   * As [[restore]], but rows stay in the segments until they are wanted. Meanwhile, all figures are as if they were
   * loaded. An error at a later load breaks the state, see [[isBroken]]; the reader gets the error of the segments.
   *
   * @param rows       exact number of rows in the segments
   * @param budget what lookups of single rows may cost before the rest is loaded. If not zero, the first segment has
   *               all of the state at its version, in the order of hashes; its blocks and those of the others hold all
   *               keys in the key groups that the family's function gives
   * @throws IllegalStateException unless one column family is declared, with one value per key
   */
  def restoreLater(
      version: Long,
      rows: Long,
      segments: StoredSegments,
      budget: LookupBudget,
      stateId: String = ""): Unit

  /** True if rows are still in segments. From any thread. */
  def isPending: Boolean

  /** Loads the rows that are still in segments. From any thread, beside a task that reads and writes the open batch. */
  def loadRest(): Unit

  /** Advances the folded version to `version` by deltas; drops committed changes. Fails as [[restore]] does. */
  def applyDeltas(version: Long, segments: Seq[StateSegment], filter: RestoreFilter, stateId: String = ""): Unit
}
