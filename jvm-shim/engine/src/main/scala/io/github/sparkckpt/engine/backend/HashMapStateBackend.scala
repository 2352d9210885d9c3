// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

import java.io.OutputStream
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicReference

import scala.util.control.NonFatal

import io.github.sparkckpt.engine.compaction.{BaseSnapshot, HashMapSnapshot}
import io.github.sparkckpt.engine.pages.{LocalTier, TableRecord}
import io.github.sparkckpt.engine.restore.{KeyGroupLoad, KeyGroupPhases, LookupBudget, PendingRestore, StoredSegments}
import io.github.sparkckpt.engine.segment._
import io.github.sparkckpt.engine.table.{KeyAccess, KeyGroupFunction, StateTable, UndeclaredKeyGroups}

/**
 * A [[KeyedStateBackend]] of hash tables in memory.
 *
 * A commit leaves the tables at the folded version; `fold`, or the opening of the next batch, applies the changes in
 * time proportional to them. So undoing the last commit costs nothing.
 *
 * Rows that a task has read point into pages, without a check of each access: an abandoned task must not access them
 * once another batch is folded.
 *
 * @param maxParallelism number of key groups, 1 to 32768
 * @param logsWrites     true if deltas record every write of a batch, not only the outcome per key
 * @param tier           local disk below the memory; null if all state stays in memory
 * @param codec          codec of the segments that it writes
 * @param checkTask      throws if the task of the thread that calls it was killed; called while a task waits
 */
final class HashMapStateBackend(
    override val maxParallelism: Int,
    logsWrites: Boolean,
    tier: LocalTier,
    codec: BlockCodec,
    checkTask: () => Unit)
    extends KeyedStateBackend {
  import HashMapStateBackend._
  import StoreState._

  def this(maxParallelism: Int, logsWrites: Boolean, tier: LocalTier) =
    this(maxParallelism, logsWrites, tier, BlockCodec.Uncompressed, () => ())

  def this(maxParallelism: Int, logsWrites: Boolean = false) = this(maxParallelism, logsWrites, null)

  require(
    maxParallelism >= 1 && maxParallelism <= TableRecord.MaxKeyGroups,
    s"The number of key groups is $maxParallelism, outside 1 to ${TableRecord.MaxKeyGroups}.")

  // Families of the folded version, of the open or committed batch, and those that this batch has dropped, which hold
  // removals for the delta only. A family of the batch may differ from its namesake in the folded version, if it was
  // dropped and created again.
  private var foldedFamilies = Map.empty[String, HashMapTable]
  private var currentFamilies = Map.empty[String, HashMapTable]
  private var droppedFamilies = Map.empty[String, HashMapTable]
  private var current: StoreState = Loaded(StateVersion.Zero)
  private var closed = false

  // The last restore that has left rows in its segments, until they are known to be loaded.
  private val later = new AtomicReference[PendingRestore]

  // Null before the first delta.
  @volatile private var deltaWriter: DeltaWriter = _

  // Those that are not closed yet.
  private val snapshots = ConcurrentHashMap.newKeySet[HashMapSnapshot]()

  private def folded: Long = current.base.version

  override def state: StoreState = current

  override def canServe(v: Long): Boolean =
    folded >= 0 && !isBroken && (v == folded || (current.isCommitted && v == folded + 1))

  override def openForWrite(v: Long): Unit = {
    // Before the lock of shed and close, which must not wait for it.
    if (v != folded) loadRest()
    synchronized(open(v))
  }

  private def open(v: Long): Unit = {
    discard()
    checkServes(v)
    if (v == folded) while (undoCommit()) () else foldCommitted()
    current = Open(current.base)
    setWritable(true)
  }

  override def reopen(): Unit = synchronized {
    discard()
    current match {
      case Committed(base, stateId, _) =>
        val kept = new KeptFamilies(stateId, currentFamilies, droppedFamilies)
        startOver()
        current = Reopened(base, kept)
        setWritable(true)
      case _ => openForWrite(folded)
    }
  }

  override def commit(stateId: String): Long = {
    val rest = later.get()
    if (rest != null) rest.check()
    forgetLoaded()
    current = current match {
      case Open(base) => Committed(base, stateId, None)
      case Reopened(base, kept) => Committed(base, stateId, Some(kept))
      case _ => throw new IllegalStateException("No batch is open.")
    }
    setWritable(false)
    folded + 1
  }

  override def dropKept(): Unit = current = current match {
    case Committed(base, stateId, _) => Committed(base, stateId, None)
    case Reopened(base, _) => Open(base)
    case other => other
  }

  override def discard(): Unit = synchronized {
    forgetLoaded()
    current match {
      case Open(base) => drop(base, None)
      case Reopened(base, kept) => drop(base, Some(kept))
      case _ =>
    }
  }

  override def undoCommit(): Boolean = synchronized(current match {
    case Committed(base, _, kept) =>
      drop(base, kept)
      true
    case _ => false
  })

  private def drop(base: StateVersion, kept: Option[CommittedChanges]): Unit = {
    dropChanges()
    current = kept match {
      case Some(changes: KeptFamilies) =>
        currentFamilies = changes.families
        droppedFamilies = changes.dropped
        Committed(base, changes.stateId, None)
      case _ => Loaded(base)
    }
  }

  override def fold(): Unit = {
    loadRest()
    synchronized(foldCommitted())
  }

  private def foldCommitted(): Unit = current match {
    case Committed(base, stateId, _) =>
      orClear {
        currentFamilies.valuesIterator.foreach(_.fold())
        foldedFamilies.foreach { case (name, f) =>
          if (!currentFamilies.get(name).exists(_ eq f)) f.dropChanges()
        }
      }
      // Families that the batch has dropped; others share their tables with those of the batch.
      closeAllBut(currentFamilies)
      droppedFamilies = Map.empty
      foldedFamilies = currentFamilies
      current = Loaded(StateVersion(base.version + 1, stateId))
    case _ =>
  }

  override def declareFamily(
      name: String,
      keyGroups: KeyGroupFunction,
      access: KeyAccess = KeyAccess.Point,
      multiValue: Boolean = false): HashMapTable = synchronized {
    val family = currentFamilies.getOrElse(name, null)
    if (family != null) {
      family.declare(keyGroups, access, multiValue)
      family
    } else {
      val made = new HashMapTable(name, keyGroups, access, multiValue, maxParallelism, logsWrites, tier)
      made.writable = isOpen
      droppedFamilies.get(name).foreach(made.markDropped)
      droppedFamilies -= name
      currentFamilies += name -> made
      if (current.isLoaded) foldedFamilies = currentFamilies
      made
    }
  }

  override def dropFamily(name: String): Boolean = {
    if (!isOpen) throw new IllegalStateException(s"No batch is open to drop column family $name.")
    val family = currentFamilies.getOrElse(name, null)
    if (family != null) {
      val removals = new HashMapTable(
        name, family.keyGroups, KeyAccess.Point, family.multiValue, maxParallelism, logsWrites)
      removals.markDropped(family)
      if (removals.buffer.count > 0) droppedFamilies += name -> removals
      currentFamilies -= name
      family.writable = false
      family.epoch += 1
    }
    family != null
  }

  override def table(name: String): HashMapTable = currentFamilies.getOrElse(name, null)

  override def familyNames: Set[String] = currentFamilies.keySet

  override def reader(name: String, v: Long): TableReader = {
    checkServes(v)
    if (v == folded) {
      foldedFamilies.get(name).map(f => new HashMapTableView(f, f.table, null)).orNull
    } else {
      currentFamilies.get(name).map(f => new HashMapTableView(f, f.table, f.buffer)).orNull
    }
  }

  override def emptyReader(
      name: String, keyGroups: KeyGroupFunction, access: KeyAccess, multiValue: Boolean): TableReader =
    new HashMapTable(name, keyGroups, access, multiValue, maxParallelism, logsWrites = false)

  override def rowCount(of: String => Boolean): Long =
    currentFamilies.valuesIterator.filter(f => of(f.name)).map(_.rowCount).sum

  override def rowsUpdated: Long = changed.map(f => f.buffer.inserted + f.buffer.updated).sum

  override def rowsRemoved: Long = changed.map(_.buffer.removed).sum

  override def memoryBytes: Long = {
    // Families of several batches have the same tables.
    val all = (foldedFamilies.valuesIterator ++ changed ++ kept).distinct.toSeq
    var sum = all.map(_.table).distinct.map(_.memoryBytes).sum + all.map(_.changeBytes).sum
    val writer = deltaWriter
    if (writer != null) sum += writer.memoryBytes
    snapshots.forEach(snapshot => sum += snapshot.memoryBytes)
    sum
  }

  override def localBytes: Long = {
    val all = foldedFamilies.valuesIterator ++ changed
    all.distinct.map(_.table.localBytes).sum
  }

  override def isBroken: Boolean = {
    val rest = later.get()
    (rest != null && rest.hasFailed) ||
    (tier != null && (foldedFamilies.valuesIterator ++ changed).exists(_.table.isBroken))
  }

  override def evict(): Unit = synchronized {
    if (tier != null) (foldedFamilies.valuesIterator ++ changed).map(_.table).distinct.foreach(_.evict())
  }

  override def close(): Unit = synchronized {
    closed = true
    (foldedFamilies.valuesIterator ++ changed).foreach(_.table.close())
  }

  private def deltas: DeltaWriter = {
    if (deltaWriter == null) deltaWriter = new DeltaWriter(maxParallelism, codec)
    deltaWriter
  }

  override def deltaSize: Long = deltas.size(changed)

  override def writeDelta(out: OutputStream): SegmentInfo = {
    if (current.isLoaded) {
      throw new IllegalStateException("There are no changes: no batch is open or just committed.")
    }
    deltas.write(changed, folded + 1, out)
  }

  override def snapshotBase(): BaseSnapshot = {
    if (!closed) loadRest()
    synchronized(takeSnapshot())
  }

  private def takeSnapshot(): BaseSnapshot = {
    if (folded < 0 || closed) throw new IllegalStateException("There is no state.")
    val views = foldedFamilies.valuesIterator.map(f => (f.name, f.multiValue, f.table.snapshot()))
    val snapshot =
      new HashMapSnapshot(folded, current.base.stateId, maxParallelism, views.toArray, codec, tier, snapshots.remove(_))
    snapshots.add(snapshot)
    snapshot
  }

  override def restore(
      version: Long,
      expectedRows: Long,
      segments: Seq[StateSegment],
      filter: RestoreFilter,
      stateId: String): Unit = synchronized {
    clear(-1, expectedRows)
    load(StateVersion(version, stateId), segments, filter)
  }

  override def restoreLater(
      version: Long,
      rows: Long,
      segments: StoredSegments,
      budget: LookupBudget,
      stateId: String): Unit = synchronized {
    clear(-1, 0)
    if (foldedFamilies.size != 1 || foldedFamilies.valuesIterator.exists(_.multiValue)) {
      throw new IllegalStateException("Only the rows of one column family without lists can be loaded later.")
    }
    later.set(foldedFamilies.valuesIterator.next().restoreLater(rows, version, segments, budget, checkTask))
    current = Loaded(StateVersion(version, stateId))
  }

  override def isPending: Boolean = {
    val rest = later.get()
    rest != null && rest.isPending
  }

  override def loadRest(): Unit = {
    val rest = later.get()
    if (rest != null) {
      rest.loadRest()
      forgetLoaded()
    }
  }

  /** Drops a restore whose rows are all loaded, with its buffers. */
  private def forgetLoaded(): Unit = {
    val rest = later.get()
    if (rest != null && !rest.isPending) later.compareAndSet(rest, null)
  }

  override def applyDeltas(
      version: Long,
      segments: Seq[StateSegment],
      filter: RestoreFilter,
      stateId: String): Unit = synchronized {
    loadRest()
    if (folded < 0) throw new IllegalStateException("There is no state.")
    discard()
    while (undoCommit()) ()
    foldedFamilies.valuesIterator.foreach(_.dropChanges())
    load(StateVersion(version, stateId), segments, filter)
  }

  /** Resets to version `v` without rows. Declared families stay declared. */
  def clear(v: Long): Unit = clear(v, 0)

  private def closeAllBut(kept: Map[String, HashMapTable]): Unit =
    foldedFamilies.valuesIterator.map(_.table).foreach { table =>
      if (!kept.valuesIterator.exists(_.table eq table)) table.close()
    }

  private def clear(v: Long, expectedRows: Long): Unit = synchronized {
    setWritable(false)
    later.set(null)
    droppedFamilies = Map.empty
    // Removes families that a restore brought and the operator has not declared.
    currentFamilies = currentFamilies.filter(!_._2.keyGroups.isInstanceOf[UndeclaredKeyGroups])
    closeAllBut(currentFamilies)
    foldedFamilies = currentFamilies
    val expected = if (foldedFamilies.size == 1) math.min(expectedRows, 1L << 27) else 0L
    foldedFamilies.valuesIterator.foreach(_.clear(expected))
    current = Loaded(StateVersion(v, ""))
  }

  private def load(target: StateVersion, segments: Seq[StateSegment], filter: RestoreFilter): Unit = orClear {
    foldedFamilies.valuesIterator.foreach { family =>
      family.table.generation += 1
      family.table.beginChanges(0)
    }
    val opened = segments.toIndexedSeq
    if (KeyGroupLoad.isUseful(opened)) loadByKeyGroup(target, opened, filter)
    else loadOneByOne(target, opened, filter)
    foldedFamilies.valuesIterator.foreach { family =>
      family.table.load.end()
      family.table.compact(true)
      family.table.endChanges()
    }
    current = Loaded(target)
  }

  private def loadByKeyGroup(
      target: StateVersion, segments: IndexedSeq[StateSegment], filter: RestoreFilter): Unit = {
    val phases = new FamilyPhases
    new KeyGroupLoad(segments, phases.sink, filter, target.version).load(phases)
  }

  /** Key group after key group of all families, whichever have rows in it. */
  private final class FamilyPhases extends KeyGroupPhases {
    private var keyGroup = 0
    private var inBases = false

    val sink = new Restored({ table =>
      table.load.begin()
      table.load.beginKeyGroup(keyGroup)
      if (inBases) table.load.beginBases()
    })

    override def beginKeyGroup(keyGroup: Int): Unit = {
      this.keyGroup = keyGroup
      inBases = false
      sink.forget()
    }

    override def beginBases(): Unit = {
      inBases = true
      tables.foreach(_.load.beginBases())
    }

    override def endKeyGroup(): Unit = tables.foreach(_.load.endKeyGroup())

    private def tables: Iterator[StateTable] = foldedFamilies.valuesIterator.map(_.table)
  }

  private def loadOneByOne(target: StateVersion, segments: Seq[StateSegment], filter: RestoreFilter): Unit = {
    var inBases = true
    val sink = new Restored(table => if (inBases) table.load.begin() else table.beginDeltas())
    val reader = new SegmentReader(sink, filter)
    segments.foreach { segment =>
      if (inBases && !segment.isBase) {
        inBases = false
        foldedFamilies.valuesIterator.foreach(_.table.load.end())
      }
      reader.load(segment, target.version)
    }
  }

  /**
   * Receiver of restored rows.
   *
   * @param begins called with a table whenever its rows follow those of another one
   */
  private final class Restored(begins: StateTable => Unit) extends SegmentSink {
    private var last: HashMapTable = _

    override def target(name: String, multiValue: Boolean): SegmentTarget = {
      if (last == null || last.name != name) {
        last = restoredFamily(name, multiValue)
        last.table.beginChanges(0)
        begins(last.table)
      }
      if (last.multiValue == multiValue) last.table else null
    }

    /** Calls `begins` before the next rows, whichever they are. */
    def forget(): Unit = last = null
  }

  private def restoredFamily(name: String, multiValue: Boolean): HashMapTable = {
    val family = foldedFamilies.getOrElse(name, null)
    if (family == null || (family.multiValue != multiValue && family.table.count == 0)) {
      val access = if (family == null) KeyAccess.Point else family.access
      val keyGroups = if (family == null) new UndeclaredKeyGroups(name) else family.keyGroups
      declareFamily(name, keyGroups, access, multiValue)
    } else {
      family
    }
  }

  /** Families with changes of the open or committed batch, including those with removals only. */
  private def changed: Iterator[HashMapTable] =
    currentFamilies.valuesIterator ++ droppedFamilies.valuesIterator

  /** Families of a commit that is kept below the batch. */
  private def kept: Iterator[HashMapTable] = {
    val changes = current match {
      case Committed(_, _, replaced) => replaced
      case Reopened(_, replaced) => Some(replaced)
      case _ => None
    }
    changes.iterator.flatMap {
      case families: KeptFamilies => families.families.valuesIterator ++ families.dropped.valuesIterator
      case _ => Iterator.empty
    }
  }

  /**
   * Drops a batch that does not count. Its task may still run and use the batch's families, so they are retired, not
   * reset.
   */
  private def dropChanges(): Unit = {
    (foldedFamilies.valuesIterator ++ changed).foreach(_.retire())
    startOver()
  }

  /** Replaces the families of the batch with unchanged ones. */
  private def startOver(): Unit = {
    droppedFamilies = Map.empty
    foldedFamilies = foldedFamilies.map { case (name, family) => name -> family.successor() }
    currentFamilies = foldedFamilies
  }

  private def setWritable(on: Boolean): Unit = currentFamilies.valuesIterator.foreach(_.writable = on)

  private def checkServes(v: Long): Unit = {
    if (!canServe(v)) {
      val has = if (folded < 0) "none" else if (current.isCommitted) s"$folded and ${folded + 1}" else s"$folded"
      throw new IllegalStateException(
        s"State version $v is not in memory ($has is): it must be restored.")
    }
  }

  private def orClear(body: => Unit): Unit = {
    try {
      body
    } catch {
      case e: Throwable =>
        // Half of the changes may be applied. Covers fatal errors too: the rest must not pass for a version.
        current = Loaded(StateVersion.None)
        try clear(-1, 0)
        catch { case NonFatal(other) => e.addSuppressed(other) }
        throw e
    }
  }
}

private object HashMapStateBackend {

  /** @param dropped families that the batch has dropped, which hold removals for the delta only */
  private final class KeptFamilies(
      override val stateId: String,
      val families: Map[String, HashMapTable],
      val dropped: Map[String, HashMapTable])
      extends CommittedChanges
}
