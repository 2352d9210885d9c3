package org.apache.spark.sql.ckpt.backend

import java.io.{Closeable, OutputStream}

/**
 * The keyed state of one store of one subtask, in memory, with versions.
 *
 * The state is a table at the ''folded'' version, plus what one batch changed:
 *
 *  - `openForWrite(v)` starts a batch on version v; puts and removes go to a write buffer on top of the table;
 *  - `writeDelta` / `deltaBytes` give the batch's changes as a delta segment;
 *  - `commit()` makes the buffer version v + 1. The table stays at v: the changes are applied when the next
 *    batch opens version v + 1, in time proportional to the changes. Opening v again instead drops the buffer. So
 *    the last commit can be undone for nothing;
 *  - `discard()` drops an open batch.
 *
 * ==Threads==
 * One thread at a time, the caller orders them (happens-before included). With one exception: `snapshotBase` may
 * run in another thread while a batch is being written, because a batch does not touch the table, but not at the
 * same time as `openForWrite`, `fold`, `restore`, `applyDeltas`, `clear` or `declareFamily`. A [[BaseSnapshot]] is
 * then written and closed by any one thread, at any time. A task that has been given up but still runs must not
 * touch the families once another batch is opened: rows point into pages, nothing checks each access.
 *
 * @param maxParallelism number of key groups, 1 to 32768
 */
final class HashMapStateBackend(val maxParallelism: Int) {

  /** Version that the tables hold; -1 if there is none, after a failed restore or `clear`. New backends hold 0. */
  def foldedVersion: Long = unsupported

  /** The newest version that can be opened: the committed one if it is not folded yet, else the folded one. */
  def version: Long = unsupported

  /** Whether a batch is open (between `openForWrite` and `commit` or `discard`). */
  def isOpen: Boolean = unsupported

  /** Whether `openForWrite(v)` and `reader(_, v)` are possible without a restore. */
  def canServe(v: Long): Boolean = unsupported

  /**
   * Opens a batch on version `v`. An open batch is discarded first. Folds if `v` is committed but not folded; drops
   * the committed changes if `v` is the version before them.
   *
   * @throws IllegalStateException if this backend does not have version `v`, see [[canServe]]
   */
  def openForWrite(v: Long): Unit = unsupported

  /** Ends the open batch as the next version and returns that. Its changes can still be read and written as delta. */
  def commit(): Long = unsupported

  /** Ends the open batch without a trace; does nothing if none is open. */
  def discard(): Unit = unsupported

  /** Forgets the committed version that is not folded yet; false if there is none. */
  def undoCommit(): Boolean = unsupported

  /** Applies the committed changes to the tables, O(changes). Does nothing if there are none. */
  def fold(): Unit = unsupported

  /**
   * The family of this name, made if absent, in the open batch or between batches. A family that a restore brought
   * becomes usable by this: the index for its [[KeyAccess]] is built then. Declaring again with the same kind of
   * access takes the new functions and costs nothing.
   *
   * @throws IllegalArgumentException if the rows that are there have the other setting of `multiValue`
   * @throws IllegalStateException if the access changes after the open batch has written to the family
   */
  def declareFamily(spec: FamilySpec): KeyedFamily = unsupported

  /** Drops a family in the open batch; undone if the batch is. False if there is none of this name. */
  def dropFamily(name: String): Boolean = unsupported

  /** The family of this name in the open or last committed batch, null if there is none. */
  def family(name: String): KeyedFamily = unsupported

  /** Names of the families in the open or last committed batch. */
  def familyNames: Set[String] = unsupported

  /**
   * A reader of a family at the folded or the last committed version, null if that version has no such family.
   *
   * @throws IllegalStateException if this backend does not have version `v`
   */
  def reader(name: String, v: Long): FamilyReader = unsupported

  /** Rows in all families, with the changes of the open or committed batch. */
  def rowCount: Long = unsupported

  /** Keys of the open or committed batch that are new or have a new value. */
  def rowsUpdated: Long = unsupported

  /** Keys of the folded version that the open or committed batch removed. */
  def rowsRemoved: Long = unsupported

  /** Bytes of memory that tables, indexes and buffers use. */
  def memoryBytes: Long = unsupported

  /** Bytes that [[writeDelta]] would write, exactly. O(changes). */
  def deltaSize: Long = unsupported

  /** Writes the changes of the open or last committed batch. Only before the next `openForWrite` or `fold`. */
  def writeDelta(out: OutputStream): SegmentInfo = unsupported

  /**
   * The changes of the open or last committed batch in memory.
   *
   * @throws StateTooLargeException if they are more than 1 GiB: use [[writeDelta]]
   */
  def deltaBytes(): SegmentBytes = unsupported

  /**
   * A consistent view of the tables at [[foldedVersion]], taken in O(pages), to be written by another thread while
   * batches go on. It must be closed.
   */
  def snapshotBase(): BaseSnapshot = unsupported

  /**
   * Replaces everything by what the segments hold: bases first, then deltas, oldest first. Declared families stay
   * declared. If it fails the backend is empty at version -1.
   *
   * @param version the version that this state is
   * @param expectedRows about how many rows there will be, 0 if not known; sizes the default family's index
   * @throws StateStreamCorruptException if a block is not what was written
   */
  def restore(version: Long, expectedRows: Long, segments: Seq[StateSegment], filter: RestoreFilter): Unit =
    unsupported

  /** Brings the folded version (committed changes are dropped) to `version` by deltas. Fails as [[restore]] does. */
  def applyDeltas(version: Long, segments: Seq[StateSegment], filter: RestoreFilter): Unit = unsupported

  /** Forgets everything; version `v` with no rows. */
  def clear(v: Long): Unit = unsupported

  private def unsupported: Nothing = throw new UnsupportedOperationException
}

/** More state than the formats can address. */
final class StateTooLargeException(message: String) extends RuntimeException(message)

/** A consistent view of all tables at one version. Written by any one thread, and closed once. */
abstract class BaseSnapshot extends Closeable {

  /** The version of the state. */
  def version: Long

  /** Rows in it. */
  def rows: Long

  /** Bytes of the keys and values in it: about the size of the base segment. */
  def rawBytes: Long

  /** Writes a base segment, block by block. */
  def write(out: OutputStream): SegmentInfo

  /** The base segment in memory; [[StateTooLargeException]] above 1 GiB. */
  def toBytes(): SegmentBytes

  /** Ends the sharing of pages; after that it cannot be written. Idempotent, from any thread. */
  override def close(): Unit
}
