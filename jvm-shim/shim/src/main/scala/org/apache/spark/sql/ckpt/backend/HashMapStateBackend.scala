package org.apache.spark.sql.ckpt.backend

import java.io.OutputStream

import scala.util.control.NonFatal

/**
 * The keyed state of one store of one subtask, in memory, with versions.
 *
 * The state is a table at the ''folded'' version, plus what one batch changed:
 *
 *  - `openForWrite(v)` starts a batch on version v; puts and removes go to a write buffer on top of the
 *    table;
 *  - `writeDelta` / `deltaBytes` give the batch's changes as a delta segment;
 *  - `commit()` makes the buffer version v + 1. The table stays at v: the changes are applied when the next
 *    batch opens version v + 1, in time proportional to the changes. Opening v again instead drops the
 *    buffer. So the last commit can be undone for nothing;
 *  - `discard()` drops an open batch.
 *
 * ==Threads== One thread at a time, the caller orders them (happens-before included). With one exception:
 * `snapshotBase` may run in another thread while a batch is being written, because a batch does not touch
 * the table, but not at the same time as `openForWrite`, `commit`, `fold`, `restore`, `applyDeltas`,
 * `clear`, `declareFamily` or `dropFamily`. A [[BaseSnapshot]] is then written and closed by any one
 * thread, at any time. A task that has been given up but still runs must not touch the families once
 * another batch is opened: rows point into pages, nothing checks each access.
 *
 * @param maxParallelism number of key groups, 1 to 32768
 * @param logsWrites     whether deltas have every write of a batch, and not only what it makes of a key
 */
final class HashMapStateBackend(val maxParallelism: Int, logsWrites: Boolean = false) {
  require(
    maxParallelism >= 1 && maxParallelism <= TableRecord.MaxKeyGroups,
    s"The number of key groups is $maxParallelism, possible are 1 to ${TableRecord.MaxKeyGroups}.")

  // Families of the folded version, of the open or committed batch, and those that this batch has
  // dropped: they hold nothing but removals for the delta. A family of the batch that has a namesake in
  // the folded version may be another one, where it was dropped and made again.
  private var foldedFamilies = Map.empty[String, KeyedFamily]
  private var currentFamilies = Map.empty[String, KeyedFamily]
  private var droppedFamilies = Map.empty[String, KeyedFamily]
  private var folded = 0L
  private var open = false
  private var pending = false

  // How often the tables have been loaded or cleared: changes that were set aside before belong to others.
  private var loads = 0
  private lazy val deltas = new DeltaWriter(maxParallelism)

  /**
   * Version that the tables hold; -1 if there is none, after a failed restore or fold. New backends hold
   * 0.
   */
  def foldedVersion: Long = folded

  /**
   * The newest version that can be opened: the committed one if it is not folded yet, else the folded
   * one.
   */
  def version: Long = if (pending) folded + 1 else folded

  /** Whether a batch is open (between `openForWrite` and `commit` or `discard`). */
  def isOpen: Boolean = open

  /** Whether `openForWrite(v)` and `reader(_, v)` are possible without a restore. */
  def canServe(v: Long): Boolean = folded >= 0 && (v == folded || (pending && v == folded + 1))

  /**
   * Opens a batch on version `v`. An open batch is discarded first. Folds if `v` is committed but not
   * folded; drops the committed changes if `v` is the version before them.
   *
   * @throws IllegalStateException if this backend does not have version `v`, see [[canServe]]
   */
  def openForWrite(v: Long): Unit = {
    if (open) abandon()
    checkServes(v)
    if (pending) {
      if (v == folded) undoCommit() else fold()
    }
    open = true
    setWritable(true)
  }

  /**
   * Ends the open batch as the next version and returns that. Its changes can still be read and written
   * as delta.
   */
  def commit(): Long = {
    if (!open) throw new IllegalStateException("No batch is open.")
    setWritable(false)
    open = false
    pending = true
    folded + 1
  }

  /** Ends the open batch without a trace; does nothing if none is open. */
  def discard(): Unit = {
    if (open) {
      setWritable(false)
      open = false
      dropChanges()
    }
  }

  /**
   * Ends the open batch of a task that may still be running: it keeps the families it has, which nobody
   * else uses any more, so whatever it still writes reaches nothing.
   */
  private def abandon(): Unit = {
    open = false
    droppedFamilies = Map.empty
    (foldedFamilies.valuesIterator ++ currentFamilies.valuesIterator).foreach(_.retire())
    foldedFamilies = foldedFamilies.map { case (name, family) => name -> family.successor() }
    currentFamilies = foldedFamilies
  }

  /**
   * Takes the committed changes that are not folded yet out, so that the version before them can be opened
   * once more without losing them; null if there are none. [[putBack]] makes them the committed ones again.
   */
  def setAside(): SetAsideChanges = {
    if (!pending) {
      null
    } else {
      pending = false
      val changes = new SetAsideChanges(folded, loads, currentFamilies, droppedFamilies)
      foldedFamilies = foldedFamilies.map { case (name, family) => name -> family.successor() }
      currentFamilies = foldedFamilies
      droppedFamilies = Map.empty
      changes
    }
  }

  /**
   * Makes changes that were set aside the committed ones, in place of what has been written or committed
   * since.
   *
   * @throws IllegalStateException if the tables are at another version than the changes are changes of, or
   *                               were restored since
   */
  def putBack(changes: SetAsideChanges): Unit = {
    if (changes.base != folded || changes.loads != loads) {
      val why = if (changes.loads == loads) "" else " and were loaded anew"
      throw new IllegalStateException(
        s"The changes are of version ${changes.base}; the tables are at $folded$why.")
    }
    if (open) abandon()
    undoCommit()
    currentFamilies = changes.families
    droppedFamilies = changes.dropped
    pending = true
  }

  /** Forgets the committed version that is not folded yet; false if there is none. */
  def undoCommit(): Boolean = {
    val was = pending
    if (pending) {
      pending = false
      dropChanges()
    }
    was
  }

  /**
   * Applies the committed changes to the tables, O(changes). Does nothing if there are none. If it fails
   * (out of memory) the backend is empty at version -1.
   */
  def fold(): Unit = {
    if (pending) {
      pending = false
      orClear {
        currentFamilies.valuesIterator.foreach(_.fold())
        foldedFamilies.foreach { case (name, f) =>
          if (!currentFamilies.get(name).exists(_ eq f)) f.dropChanges()
        }
      }
      droppedFamilies = Map.empty
      foldedFamilies = currentFamilies
      folded += 1
    }
  }

  /**
   * The family of this name, made if absent, in the open batch or between batches. A family that a
   * restore brought becomes usable by this: the index for its [[KeyAccess]] is built then. Declaring
   * again with the same kind of access takes the new functions and costs nothing.
   *
   * @throws IllegalArgumentException if the rows that are there have the other setting of `multiValue`
   * @throws IllegalStateException if the access changes after the open batch has written to the family
   */
  def declareFamily(spec: FamilySpec): KeyedFamily = {
    val family = currentFamilies.getOrElse(spec.name, null)
    if (family != null) {
      family.declare(spec)
      family
    } else {
      val made = new KeyedFamily(spec, maxParallelism, logsWrites)
      made.writable = open
      droppedFamilies.get(spec.name).foreach(made.markDropped)
      droppedFamilies -= spec.name
      currentFamilies += spec.name -> made
      if (!open && !pending) foldedFamilies = currentFamilies
      made
    }
  }

  /**
   * Drops a family in the open batch; undone if the batch is. False if there is none of this name.
   * O(rows): the delta names each removed key.
   *
   * @throws IllegalStateException if no batch is open
   */
  def dropFamily(name: String): Boolean = {
    if (!open) throw new IllegalStateException(s"No batch is open to drop column family $name.")
    val family = currentFamilies.getOrElse(name, null)
    if (family != null) {
      val removals = new KeyedFamily(family.spec.copy(access = KeyAccess.Point), maxParallelism, logsWrites)
      removals.markDropped(family)
      if (removals.buffer.count > 0) droppedFamilies += name -> removals
      currentFamilies -= name
      family.writable = false
      family.epoch += 1
    }
    family != null
  }

  /** The family of this name in the open or last committed batch, null if there is none. */
  def family(name: String): KeyedFamily = currentFamilies.getOrElse(name, null)

  /** Names of the families in the open or last committed batch. */
  def familyNames: Set[String] = currentFamilies.keySet

  /**
   * A reader of a family at the folded or the last committed version, null if that version has no such
   * family.
   *
   * @throws IllegalStateException if this backend does not have version `v`
   */
  def reader(name: String, v: Long): FamilyReader = {
    checkServes(v)
    if (v == folded) {
      foldedFamilies.get(name).map(f => new FamilyView(f, f.table, null)).orNull
    } else {
      currentFamilies.get(name).map(f => new FamilyView(f, f.table, f.buffer)).orNull
    }
  }

  /** A reader of a family that no version has. */
  def emptyReader(spec: FamilySpec): FamilyReader = new KeyedFamily(spec, maxParallelism, logsWrites = false)

  /** Rows in all families, with the changes of the open or committed batch. */
  def rowCount: Long = rowCount(_ => true)

  /** Rows in the families of these names. */
  def rowCount(of: String => Boolean): Long =
    currentFamilies.valuesIterator.filter(f => of(f.name)).map(_.rowCount).sum

  /** Keys of the open or committed batch that are new or have a new value. */
  def rowsUpdated: Long = changed.map(f => f.buffer.inserted + f.buffer.updated).sum

  /** Keys of the folded version that the open or committed batch removed. */
  def rowsRemoved: Long = changed.map(_.buffer.removed).sum

  /** Bytes of memory that tables, indexes and buffers use. */
  def memoryBytes: Long = {
    val all = foldedFamilies.valuesIterator ++ changed
    all.distinct.map(_.memoryBytes).sum
  }

  /** About how many bytes [[writeDelta]] will write, not less. O(changes). */
  def deltaSize: Long = deltas.size(changed)

  /**
   * Writes the changes of the open or last committed batch. Only before the next `openForWrite` or
   * `fold`. The stream is not closed.
   */
  def writeDelta(out: OutputStream): SegmentInfo = {
    if (!open && !pending) {
      throw new IllegalStateException("There are no changes: no batch is open or just committed.")
    }
    deltas.write(changed, folded + 1, out)
  }

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
   * A consistent view of the tables at [[foldedVersion]], taken in O(pages), to be written by another
   * thread while batches go on. It must be closed.
   */
  def snapshotBase(): BaseSnapshot = {
    if (folded < 0) throw new IllegalStateException("There is no state.")
    val views = foldedFamilies.valuesIterator.map(f => (f.name, f.spec.multiValue, f.table.snapshot()))
    new BaseSnapshot(folded, maxParallelism, views.toArray)
  }

  /**
   * Replaces everything by what the segments hold: bases first, then deltas, oldest first. Declared
   * families stay declared. If it fails the backend is empty at version -1.
   *
   * @param version the version that this state is
   * @param expectedRows about how many rows there will be, 0 if not known; sizes the index of a store with
   *                     one family
   * @throws StateStreamCorruptException if a block is not what was written
   */
  def restore(version: Long, expectedRows: Long, segments: Seq[StateSegment], filter: RestoreFilter): Unit = {
    clear(-1, expectedRows)
    load(version, segments, filter)
  }

  /**
   * Brings the folded version (committed changes are dropped) to `version` by deltas. Fails as
   * [[restore]] does.
   */
  def applyDeltas(version: Long, segments: Seq[StateSegment], filter: RestoreFilter): Unit = {
    if (folded < 0) throw new IllegalStateException("There is no state.")
    discard()
    undoCommit()
    foldedFamilies.valuesIterator.foreach(_.dropChanges())
    load(version, segments, filter)
  }

  /** Forgets everything; version `v` with no rows. Declared families stay declared. */
  def clear(v: Long): Unit = clear(v, 0)

  private def clear(v: Long, expectedRows: Long): Unit = {
    open = false
    pending = false
    loads += 1
    setWritable(false)
    droppedFamilies = Map.empty
    // What a restore brought and nobody declared goes.
    currentFamilies = currentFamilies.filter(!_._2.spec.keyGroups.isInstanceOf[UndeclaredKeyGroups])
    foldedFamilies = currentFamilies
    val expected = if (foldedFamilies.size == 1) math.min(expectedRows, 1L << 27) else 0L
    foldedFamilies.valuesIterator.foreach(_.clear(expected))
    folded = v
  }

  private def load(version: Long, segments: Seq[StateSegment], filter: RestoreFilter): Unit = orClear {
    loads += 1
    foldedFamilies.valuesIterator.foreach(_.table.generation += 1)
    val reader = new SegmentReader(new FamilySink(restoredFamily), filter)
    segments.foreach(s => reader.load(s, version))
    foldedFamilies.valuesIterator.foreach(_.table.compact(true))
    folded = version
  }

  private def restoredFamily(name: String, multiValue: Boolean): KeyedFamily = {
    val family = foldedFamilies.getOrElse(name, null)
    if (family == null || (family.spec.multiValue != multiValue && family.table.count == 0)) {
      val access = if (family == null) KeyAccess.Point else family.spec.access
      val keyGroups = if (family == null) new UndeclaredKeyGroups(name) else family.spec.keyGroups
      declareFamily(FamilySpec(name, keyGroups, access, multiValue))
    } else {
      family
    }
  }

  /** Families with changes of the open or committed batch, those that only remove among them. */
  private def changed: Iterator[KeyedFamily] =
    currentFamilies.valuesIterator ++ droppedFamilies.valuesIterator

  private def dropChanges(): Unit = {
    changed.foreach(_.dropChanges())
    droppedFamilies = Map.empty
    currentFamilies = foldedFamilies
    // Also those that the batch had dropped.
    currentFamilies.valuesIterator.foreach(_.dropChanges())
  }

  private def setWritable(on: Boolean): Unit = currentFamilies.valuesIterator.foreach(_.writable = on)

  private def checkServes(v: Long): Unit = {
    if (!canServe(v)) {
      val has = if (folded < 0) "none" else if (pending) s"$folded and ${folded + 1}" else s"$folded"
      throw new IllegalStateException(
        s"Version $v of the state is not in memory, there is $has: it must be restored.")
    }
  }

  private def orClear(body: => Unit): Unit = {
    try {
      body
    } catch {
      case e: Throwable =>
        // Half of the changes may be in. Also for fatal errors: what is left must not be taken for a version.
        folded = -1
        try clear(-1, 0)
        catch { case NonFatal(other) => e.addSuppressed(other) }
        throw e
    }
  }
}
