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
package org.apache.spark.sql.ckpt.backend

import java.io.OutputStream

/**
 * The keyed state of one store of one subtask, with versions: the seam for other backends than [[HashMapStateBackend]].
 *
 * The state is at the ''folded'' version, plus what one batch changed:
 *
 *  - `openForWrite(v)` starts a batch on version v; puts and removes go to a write buffer;
 *  - `writeDelta` / `deltaBytes` give the batch's changes as a delta segment;
 *  - `commit()` makes the buffer version v + 1. The changes are applied when the next batch opens version v + 1.
 *    Opening v again instead drops them;
 *  - `discard()` drops an open batch;
 *  - `reopen()` opens v once more and keeps what was committed, for the case that the new batch does not count.
 *
 * Which of these has happened is the [[StoreState]].
 *
 * A batch that ends without a commit takes its tables with it: the next batch has others on the same state. A task
 * that was given up and still writes, from a thread of its own perhaps, so never reaches the attempt after it.
 *
 * ==Threads== One thread at a time, the caller orders them (happens-before included). With one exception:
 * `snapshotBase` may run in another thread while a batch is being written, because a batch does not touch
 * the folded state, but not at the same time as `openForWrite`, `commit`, `fold`, `restore`, `applyDeltas`,
 * `declareFamily` or `dropFamily`. A [[BaseSnapshot]] is then written and closed by any one thread, at any time.
 */
trait KeyedStateBackend {

  /** Number of key groups. */
  def maxParallelism: Int

  /** The version in the tables, and what lies on top of it. */
  def state: StoreState

  /** Version that the tables hold; -1 if there is none, after a failed restore or fold. New backends hold 0. */
  def foldedVersion: Long = state.base.version

  /** The newest version that can be opened: the committed one if it is not folded yet, else the folded one. */
  def version: Long = if (state.isCommitted) foldedVersion + 1 else foldedVersion

  /** True if a batch is open (between `openForWrite` and `commit` or `discard`). */
  def isOpen: Boolean = state.isOpen

  /** True if `openForWrite(v)` and `reader(_, v)` are possible without a restore. */
  def canServe(v: Long): Boolean

  /**
   * Opens a batch on version `v`. An open batch is discarded first. Folds if `v` is committed but not
   * folded; drops the committed changes if `v` is the version before them.
   *
   * @throws IllegalStateException if this backend does not have version `v`, see [[canServe]]
   */
  def openForWrite(v: Long): Unit

  /**
   * Opens another batch on the folded version and keeps the committed changes that lie on top of it: `discard`, or
   * `undoCommit` of the new batch, makes them the committed ones again. An open batch is discarded first. Without
   * committed changes this is `openForWrite` of the folded version.
   *
   * @throws IllegalStateException if there is no state
   */
  def reopen(): Unit

  /**
   * Ends the open batch as the next version and returns that. Its changes can still be read and written
   * as delta.
   *
   * @param stateId id of the state that the changes lead to
   * @throws IllegalStateException if no batch is open
   */
  def commit(stateId: String = ""): Long

  /** Forgets the changes that the committed ones have replaced, or those that the open batch may replace. */
  def dropKept(): Unit

  /** Ends the open batch without a trace; does nothing if none is open. */
  def discard(): Unit

  /**
   * Forgets the committed version that is not folded yet; false if there is none. Changes that it has replaced are the
   * committed ones again.
   */
  def undoCommit(): Boolean

  /**
   * Applies the committed changes to the tables, O(changes). Does nothing if there are none. If it fails
   * (out of memory) the backend is empty at version -1.
   */
  def fold(): Unit

  /**
   * The table of a column family, made if absent, in the open batch or between batches. A family that a
   * restore brought becomes usable by this: the index for its [[KeyAccess]] is built then. Declaring
   * again with the same kind of access takes the new functions and costs nothing.
   *
   * @param keyGroups key group of a new key
   * @param access how keys are reached
   * @param multiValue true if a value is a list of rows
   * @throws IllegalArgumentException if the rows that are there have the other setting of `multiValue`
   * @throws IllegalStateException if the access changes after the open batch has written to the family
   */
  def declareFamily(
      name: String,
      keyGroups: KeyGroupFunction,
      access: KeyAccess = KeyAccess.Point,
      multiValue: Boolean = false): KeyedTable

  /**
   * Drops a family in the open batch; undone if the batch is. False if there is none of this name.
   * O(rows): the delta names each removed key.
   *
   * @throws IllegalStateException if no batch is open
   */
  def dropFamily(name: String): Boolean

  /** The table of a family in the open or last committed batch, null if there is none. */
  def table(name: String): KeyedTable

  /** Names of the families in the open or last committed batch. */
  def familyNames: Set[String]

  /**
   * A reader of a family at the folded or the last committed version, null if that version has no such
   * family.
   *
   * @throws IllegalStateException if this backend does not have version `v`
   */
  def reader(name: String, v: Long): TableReader

  /** A reader of a family that no version has. */
  def emptyReader(name: String, keyGroups: KeyGroupFunction, access: KeyAccess, multiValue: Boolean): TableReader

  /** Rows in all families, with the changes of the open or committed batch. */
  def rowCount: Long = rowCount(_ => true)

  /** Rows in the families of these names. */
  def rowCount(of: String => Boolean): Long

  /** Keys of the open or committed batch that are new or have a new value. */
  def rowsUpdated: Long

  /** Keys of the folded version that the open or committed batch removed. */
  def rowsRemoved: Long

  /** Bytes of memory that tables, indexes and buffers use. From any thread: an estimate while a batch is written. */
  def memoryBytes: Long

  /** About how many bytes [[writeDelta]] will write, not less. O(changes). */
  def deltaSize: Long

  /**
   * Writes the changes of the open or last committed batch. Only before the next `openForWrite` or
   * `fold`. The stream is not closed.
   */
  def writeDelta(out: OutputStream): SegmentInfo

  /**
   * The changes of the open or last committed batch in memory.
   *
   * @throws StateTooLargeException if they are more than 1 GiB: use [[writeDelta]]
   */
  def deltaBytes(): SegmentBytes = {
    val buffer = new SegmentBuffer(deltaSize)
    val info = writeDelta(buffer)
    SegmentBytes(info, buffer.toArray)
  }

  /**
   * A consistent view of the state at [[foldedVersion]], to be written by another
   * thread while batches go on. It must be closed.
   */
  def snapshotBase(): BaseSnapshot

  /**
   * Replaces everything by what the segments hold: bases first, then deltas, oldest first. Declared
   * families stay declared. If it fails the backend is empty at version -1.
   *
   * @param version the version that this state is
   * @param expectedRows about how many rows there will be, 0 if not known; sizes the index of a store with
   *                     one family
   * @param stateId id of this state
   * @throws StateStreamCorruptException if a block is not what was written
   */
  def restore(
      version: Long,
      expectedRows: Long,
      segments: Seq[StateSegment],
      filter: RestoreFilter,
      stateId: String = ""): Unit

  /**
   * Brings the folded version (committed changes are dropped) to `version` by deltas. Fails as
   * [[restore]] does.
   */
  def applyDeltas(version: Long, segments: Seq[StateSegment], filter: RestoreFilter, stateId: String = ""): Unit
}
