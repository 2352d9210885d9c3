// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.restore

import java.util.concurrent.TimeUnit.MILLISECONDS
import java.util.concurrent.locks.ReentrantLock

import io.github.sparkckpt.engine.bytes.Bytes
import io.github.sparkckpt.engine.segment.{RestoreFilter, SegmentReader, StateSegment}
import io.github.sparkckpt.engine.table.{ColdRows, KeyGroupFunction, StateTable}

/**
 * Part of a table that a restore has left in its segments. An access to a key loads its row alone ([[RowLoads]]). Once
 * that has cost its budget, or rows are wanted that no key names, the rest is loaded at once.
 *
 * A load never changes, moves or frees what an access has found: it adds other rows. So it may run in the middle of a
 * batch. It may evict pages, which readers bear anyway.
 *
 * Threads: any. Until everything is loaded, each access to the table holds this lock. It is the last one to take: who
 * holds it waits for nothing but the storage. A load holds it for minutes, so a task that is killed stops waiting.
 *
 * @param table     an empty table
 * @param family    its column family, the only one of the store
 * @param keyGroups key group of a key; null if it is unknown, and the first access loads everything
 * @param rows      number of rows in the segments
 * @param budget    what lookups may cost
 * @param newest    version of the state
 * @param checkTask throws if the task of the thread that calls it was killed
 */
private[engine] final class PendingRestore(
    table: StateTable,
    family: String,
    keyGroups: KeyGroupFunction,
    override val rows: Long,
    budget: LookupBudget,
    newest: Long,
    segments: StoredSegments,
    checkTask: () => Unit)
    extends ColdRows {
  import PendingRestore._

  private val lock = new ReentrantLock

  private val sink = new PlacedRows(table, keyGroups).sink(family)
  private val phases = new LoadPhases(table, () => checkOpen())

  // Null if no row is loaded alone, and once everything is loaded.
  @volatile private var rowLoads: RowLoads =
    if (keyGroups == null || budget.total == 0) null
    else new RowLoads(table, family, keyGroups, budget, newest, segments, phases)

  @volatile private var done = false
  @volatile private var closed = false
  @volatile private var failure: Throwable = _

  private val blockCount = segments.keyGroups.iterator.map(_.length.toLong).sum

  override def memoryBytes: Long =
    if (done) 0L
    else {
      val rows = rowLoads
      blockCount * BlockPlaceBytes + (if (rows == null) 0L else rows.memoryBytes) + segments.memoryBytes
    }

  /** True until everything is loaded. */
  def isPending: Boolean = !done

  /** True if an error has left the table without some of its rows. */
  def hasFailed: Boolean = failure != null

  /** Throws that error, if there was one. */
  def check(): Unit = if (failure != null) throw failure

  /**
   * Before an access to a key, or to keys that are not there. Takes the lock until [[leave]].
   *
   * @throws TableRetiredException if the state was given up
   * @throws Exception that of `checkTask`, if the task is killed while it waits for another thread
   * @throws InterruptedException if it is killed and interrupted
   */
  override def enter(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit = {
    acquire()
    try {
      if (!done) demanded {
        if (rowLoads == null) loadAll() else loadRow(keyBase, keyOffset, keyLength)
      }
    } catch {
      case e: Throwable =>
        leave()
        throw e
    }
  }

  /** No timed wait at first: it fails for an interrupted thread even if the lock is free. */
  private def acquire(): Unit = if (!lock.tryLock()) {
    // In pieces: a killed task is not always interrupted.
    while (!lock.tryLock(LookMillis, MILLISECONDS)) checkTask()
  }

  override def leave(): Unit = {
    lock.unlock()
    closeIfIdle()
  }

  override def loadForReader(): Unit = holding(demanded(loadAll()))

  override def loadRest(): Unit = holding(loadAll())

  override def ifIdle(action: => Unit): Unit =
    if (!lock.isHeldByCurrentThread && lock.tryLock()) {
      try action finally leave()
    }

  override def close(): Unit = {
    closed = true
    closeIfIdle()
  }

  private def closeIfIdle(): Unit =
    if (closed && lock.tryLock()) {
      try {
        if (lock.getHoldCount == 1) {
          segments.close()
          table.release()
        }
      } finally lock.unlock()
    }

  private def holding(action: => Unit): Unit = {
    acquire()
    try action finally leave()
  }

  private def demanded(load: => Unit): Unit = {
    check()
    try load catch {
      case e: Throwable if e eq failure =>
        failure = segments.unreadable(e)
        throw failure
    }
  }

  // ---- loading, with the lock ----

  private def loadRow(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit = {
    if (rowLoads.lackDeltas) loading(RowLoads.deltas(segments))(rowLoads.loadDeltas)
    val hash = Bytes.hash(keyBase, keyOffset, keyLength)
    if (!rowLoads.hasLoaded(hash, keyBase, keyOffset, keyLength)) {
      val isLoaded = !rowLoads.isBulkCheaper && changing(rowLoads.load(hash, keyBase, keyOffset, keyLength))
      if (!isLoaded) loadAll()
    }
  }

  private def loadAll(): Unit = if (!done) loading(segments.keyGroups.indices)(loadOthers)

  /** Loads all rows but those that were loaded alone. */
  private def loadOthers(open: Int => StateSegment): Unit = {
    val opened = segments.keyGroups.indices.map(open)
    table.load.beginMore()
    if (rowLoads != null && !rowLoads.lackDeltas) {
      rowLoads.loadRest(opened.head)
    } else if (KeyGroupLoad.isUseful(opened)) {
      new KeyGroupLoad(opened, sink, _ => true, newest).load(phases)
    } else {
      loadOneByOne(opened)
    }
    table.load.end()
    done = true
  }

  private def loadOneByOne(opened: IndexedSeq[StateSegment]): Unit = {
    val reader = new SegmentReader(sink, isExpected)
    var inBases = true
    for (i <- opened.indices) {
      if (inBases && !opened(i).isBase) {
        inBases = false
        table.load.end()
      }
      reader.start(opened(i))
      var j = 0
      while (j < opened(i).offsets.length) {
        checkOpen()
        expected = segments.keyGroups(i)(j)
        reader.loadBlock(j, newest)
        j += 1
      }
    }
  }

  // Key group of the block that is being loaded: a block of another one is not that which was asked for.
  private var expected = 0
  private val isExpected: RestoreFilter = (group: Int) => group == expected

  private def checkOpen(): Unit = if (closed) throw new TableRetiredException(family)

  private def loading(wanted: Seq[Int])(body: (Int => StateSegment) => Unit): Unit = {
    changing(segments.reading(wanted)(body))
    if (done) {
      // Readers may hold this for long.
      rowLoads = null
      table.cold = null
      segments.close()
      segments.loaded(table.count)
    }
  }

  /** Adds rows to the table. */
  private def changing[A](body: => A): A = {
    check()
    checkOpen()
    try {
      table.beginLateLoad()
      val result = body
      table.endChanges()
      result
    } catch {
      case e: TableRetiredException => throw e
      case e: Throwable =>
        // Some rows are there and others are not, so that nothing may be read.
        failure = e
        throw e
    }
  }
}

private[engine] object PendingRestore {

  /** Time between two looks whether a waiting task was killed. */
  private final val LookMillis = 100L

  /** Bytes of the place of a block in its segment, and of its key group. */
  private final val BlockPlaceBytes = 12L
}
