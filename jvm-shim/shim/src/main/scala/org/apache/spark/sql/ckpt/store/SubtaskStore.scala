// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import java.io.OutputStream
import java.util.UUID
import java.util.concurrent.atomic.AtomicBoolean

import io.github.sparkckpt.engine.backend.{HashMapStateBackend, KeyedTable, TableReader}
import io.github.sparkckpt.engine.compaction.DeferredSnapshot
import org.apache.hadoop.conf.Configuration

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.ckpt.client.{CoordinatorClient, LoadedStores, NotifiedStore}
import org.apache.spark.sql.ckpt.common.{CheckpointFailure, Settings, BackgroundRequests, StateIds}
import org.apache.spark.sql.ckpt.compaction.{BaseSnapshots, RecentDeltas}
import org.apache.spark.sql.ckpt.compat._
import org.apache.spark.sql.ckpt.families.{ColumnFamilies, ColumnFamily}
import org.apache.spark.sql.ckpt.files.{GroupCommit, NewSegments, StateFiles}
import org.apache.spark.sql.ckpt.locate._
import org.apache.spark.sql.ckpt.protocol._
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.execution.streaming.state._

/**
 * The state store of one subtask in this JVM.
 *
 * It loads the state at the version that Spark requests, and sends the changes of each batch to the checkpoint
 * coordinator on the driver. It decides nothing about checkpoints.
 *
 * Threads: Spark opens and commits stores from task threads. Several jobs may run on one batch at a time, and an
 * abandoned attempt may still be running. Changes of the state take turns ([[StoreTurn]]), including loads and waits
 * for the coordinator. Reads and writes of rows hold no lock; `epoch` fences them. Metrics, notifications and closing
 * never wait.
 *
 * @param families its column families
 * @param settings our settings of the session
 * @param withoutApplication the coordinator of a JVM without a Spark application
 */
private[ckpt] final class SubtaskStore(
    val id: StateStoreId,
    val families: ColumnFamilies,
    conf: StateStoreConf,
    hadoopConf: Configuration,
    settings: Map[String, String],
    withoutApplication: () => Coordinator)
    extends NotifiedStore
    with MemoryUser {
  private val timeout = Settings.bridgeTimeout(settings)
  private val codec = Settings.compression(settings)
  private val tier = Settings.memoryBudget(settings).map(LocalDisk.tier)
  private val coordinator = new CoordinatorClient(withoutApplication)
  val job: StoreJob = StoreJob.of(
    id, hadoopConf.get(StreamExecution.RUN_ID_KEY), settings, hadoopConf, coordinator, timeout)
  private val messages = new CommitMessages(job, coordinator)
  private val files = new StateFiles(job.ckptDirectory, hadoopConf)
  private val locator = new StateLocator(
    job, coordinator, files, timeout, Settings.ackThreshold(settings), conf.enableStateStoreCheckpointIds)
  private val partitions = new RowPartitions(id, families.default, hadoopConf)
  private val deltas = new StateDeltas(id.toString, locate(_, None), files, partitions)
  private val recent = new RecentDeltas(files.isRemote)
  private val bases = new BaseSnapshots(id.toString, files, () => locator.inlineLimit, recent, codec)
  private val turn = new StoreTurn(id, timeout)
  private val state = new HeldState(id, families, files, partitions,
    new HashMapStateBackend(
      _, Settings.tellsWrites(settings), tier.orNull, codec, checkTask = () => KilledTasks.check()),
    messages.unreadable(_, _, timeout))
  private val snapshotReports = job match {
    case query: QueryJob if CoordinatorReports.wantsSnapshots(conf) =>
      val provider = StateStoreProviderId(id, UUID.fromString(query.runId))
      Some(new SnapshotReports(provider, conf.minDeltasForSnapshot))
    case _ => None
  }

  /** Makes the store's directory, by which the `statestore` data source finds a query's partitions. */
  private val directory = BackgroundRequests.beginIf(files.isRemote)(files.makeDirectory(id.storeCheckpointLocation()))
  @volatile private var closed = false

  /** The same, for what must not keep the store alive. */
  private val isGone = new AtomicBoolean

  /** Cost of the loads since the last batch that counted. */
  private var restored = RestoreCost.Nothing
  private val newestBase = new NewestBase

  /** Figures of the local disk at the last batch that counted. */
  private var localBefore = LocalCost.Nothing

  // Last: from here on, other threads use the store.
  job match {
    case query: QueryJob => LoadedStores.here.add(query.runId, this)
    case _ =>
  }
  StateMemory.add(this)

  def epoch: Long = state.epoch

  // ---- opening ----

  /** Opens a batch on a version. */
  def openForWrite(
      version: Long,
      stateId: Option[String],
      forceSnapshot: Boolean,
      loadEmpty: Boolean): CheckpointStateStore = turn {
    turn.awaitOthers(state.epoch)
    bringTo(version, stateId)
    val store = beginBatch(version, forceSnapshot)
    // The delta names each removed key, so the previous version must be loaded.
    if (loadEmpty) state.backend.familyNames.foreach(state.backend.dropFamily)
    store
  }

  def openForRead(version: Long, stateId: Option[String]): CheckpointReadStore = turn {
    // Readers of a version may run beside the task that writes it.
    if (!state.isAt(version)) turn.awaitOthers(state.epoch)
    bringTo(version, stateId)
    new CheckpointReadStore(this, version)
  }

  /** Opens a batch on the version of a read store. */
  def upgrade(
      readStore: ReadStateStore,
      version: Long,
      stateId: Option[String],
      forceSnapshot: Boolean): CheckpointStateStore = turn {
    turn.awaitOthers(state.epoch)
    // Same task and version: the read store's location still holds unless another attempt intervened.
    if (readStore.version != version || !state.isAt(version)) bringTo(version, stateId)
    beginBatch(version, forceSnapshot)
  }

  private def beginBatch(version: Long, forceSnapshot: Boolean): CheckpointStateStore = {
    state.openForWrite(version)
    turn.opened(state.epoch)
    GroupCommit.here.enter(files.directory, TaskContext.get())
    new CheckpointStateStore(this, version, state.epoch, forceSnapshot)
  }

  // ---- replaying ----

  /** Opens a batch on a version that is loaded from an earlier one. */
  def replayForWrite(
      from: Long,
      until: Long,
      fromId: Option[String],
      untilId: Option[String]): CheckpointStateStore = turn {
    replay(from, until, fromId, untilId)
    beginBatch(until, forceSnapshot = false)
  }

  def replayForRead(
      from: Long,
      until: Long,
      fromId: Option[String],
      untilId: Option[String]): CheckpointReadStore = turn {
    replay(from, until, fromId, untilId)
    new CheckpointReadStore(this, until)
  }

  /** Loads a version from an earlier checkpoint and the deltas since. */
  private def replay(from: Long, until: Long, fromId: Option[String], untilId: Option[String]): Unit = {
    if (from < 1) throw QueryExecutionErrors.unexpectedStateStoreVersion(from)
    if (until < from) throw QueryExecutionErrors.unexpectedStateStoreVersion(until)
    val end = locate(until, untilId)
    val chain = deltas.between(from, until, end, ofBatches = false)
    load(from, eagerly(deltas.ofSameRows(from, locate(from, fromId), end)))
    restored = state.advance(until, end.copy(segments = chain.map(_.segment)))
  }

  /** Changes to a column family from one version to another. */
  def changes(from: Long, until: Long, columnFamily: String, untilId: Option[String]): ChangeFeed = turn {
    val family = families.get("getStateStoreChangeDataReader", columnFamily)
    val chain = deltas.between(from - 1, until, locate(until, untilId), ofBatches = true)
    new ChangeFeed(family, families.newValueEncoding(family), deltas, chain)
  }

  /** Location of the state of a version, even if it is in memory. */
  private def locate(version: Long, stateId: Option[String]): StateLocation =
    locator.locate(version, stateId, held = None).get

  // ---- loading ----

  /** Makes a version the folded one in memory, with the state that the coordinator names. */
  private def bringTo(version: Long, stateId: Option[String]): Unit = {
    if (version < 0) throw QueryExecutionErrors.unexpectedStateStoreVersion(version)
    // Only one batch runs before everything is loaded: files of the earlier version may be deleted later.
    if (!state.isAt(version) && state.idOf(version).isDefined) state.loadRest()
    val found = locator.locate(version, stateId, state.idOf(version))
    // After rows that could not be loaded later, all are loaded now: the error is that of a start.
    found.filterNot(state.matches(version, _))
      .foreach(location => load(version, if (state.isBroken) eagerly(location) else location))
    if (!state.isAt(version)) state.fold()
    found.foreach { location =>
      if (location.keepDeltas) recent.want()
      follow(location.compaction)
    }
  }

  /**
   * Follows the coordinator's request for a base, of the version that is folded when its writing starts. An unloaded
   * store sends no further ack, so it begins none.
   */
  private def follow(request: CompactionRequest): Unit = {
    val backend = state.backend
    bases.follow(request, new DeferredSnapshot(() => backend.snapshotBase(), () => backend.loadRest()))
  }

  private def eagerly(found: StateLocation): StateLocation = found.copy(restore = found.restore.eager)

  private def load(version: Long, found: StateLocation): Unit = {
    forgetWork()
    restored = try state.load(version, found) catch {
      case e: CheckpointFailure => throw messages.unreadable(version, e, timeout)
    }
    newestBase.loaded(version, found.segments.count(!_.isBase))
  }

  // ---- calls from stores ----

  /** True if a store checks the first row that it reads, as Spark's providers do without column families. */
  def checksFormat: Boolean = conf.formatValidationEnabled && !families.useColumnFamilies

  def checkFormat(family: ColumnFamily, key: UnsafeRow, value: UnsafeRow): Unit =
    RowFormat.validate(key, family.keySchema, value, family.valueSchema, id, conf)

  def familyNames: Set[String] =
    turn(if (state.isEmpty) Set.empty else state.backend.familyNames)

  def readerAt(family: ColumnFamily, version: Long): TableReader =
    turn(state.reader(family, version))

  def tableForWrite(store: CheckpointStateStore, family: ColumnFamily): KeyedTable =
    inBatchOf(store)(state.table(family))

  def createFamily(store: CheckpointStateStore, family: ColumnFamily): Boolean =
    inBatchOf(store)(state.createFamily(family))

  /** For a store that only reads. */
  def describeFamily(family: ColumnFamily): Boolean = turn(state.createFamily(family))

  def dropFamily(store: CheckpointStateStore, name: String): Boolean =
    inBatchOf(store)(state.dropFamily(name))

  /** Discards the batch without waiting: if another thread has its turn, that one does it at the end. */
  def discard(store: CheckpointStateStore): Unit = turn.orLater {
    if (store.epoch == state.epoch) state.discard()
    turn.closed(store.epoch)
  }

  /** A change in a turn: another attempt may have opened a batch in between. */
  private def inBatchOf[A](store: CheckpointStateStore)(body: => A): A = turn {
    checkCurrent(store)
    body
  }

  /** @throws StoreUsageFailure if the store belongs to an abandoned attempt */
  def checkCurrent(store: CheckpointStateStore): Unit =
    if (store.epoch != state.epoch) throw state.superseded(store.version)

  // ---- committing ----

  /** Sends the changes of the open batch to the coordinator, and keeps them if the ack counts. */
  def commit(store: CheckpointStateStore, forceSnapshot: Boolean): CommittedBatch = inBatchOf(store) {
    val version = store.version + 1
    val stateId = StateIds.newId()
    val batch = try {
      directory.result()
      val shipment = prepare(version, stateId, forceSnapshot)
      val asked = System.nanoTime()
      val ack = messages.ack(version, stateId, state.baseId, state.backend, shipment)
      val reply = AckReply.of(coordinator.ask(ack.toMessage, timeout))
      val counted = reply.stateId.getOrElse(stateId)
      settle(reply.outcome, version, stateId, counted, reply.reason.getOrElse("no reason was given"))
      if (reply.isSuccess) {
        newestBase.committed(
          version,
          shipment.delta.blocks.count > 0,
          ack.base.map(_.version),
          ack.merged.map(_.segment))
        shipment.waited.foreach(recent.replaced)
        if (reply.keepDeltas) recent.want()
        recent.add(version, version, shipment.delta.size)(write(shipment.delta, _))
        if (shipment.compactionFailure.isDefined) bases.clearFailure()
        follow(reply.compaction)
      }
      val cost = CommitCost(shipment.snapshotNanos, shipment.writeNanos, System.nanoTime() - asked,
        shipment.delta.size, shipment.waited.fold(0L)(_.segment.size), shipment.compactionFailure.size)
      val local = tier.fold(LocalCost.Nothing)(LocalCost.of(_, state.localBytes))
      val sinceLast = local.since(localBefore)
      localBefore = local
      restored += state.takeLaterCost()
      CommittedBatch(version, counted, state.baseId, state.stateRows, state.indexRows, cost, restored, sinceLast)
    } catch {
      case e: Throwable =>
        state.forgetCommit()
        throw e
    } finally {
      turn.closed(store.epoch)
      // What this task has still written for an ack goes with the store.
      if (closed) forgetWork()
    }
    restored = RestoreCost.Nothing
    // A chain at its bound takes longer to restore than a snapshot.
    if (!bases.isRequired) snapshotReports.foreach(_.committed(version))
    CoordinatorReports.commit(id, version, conf, hadoopConf)
    batch
  }

  /** Writes the delta of the committed batch once more. */
  private def write(delta: SegmentRef, out: OutputStream): Unit =
    if (delta.path.isEmpty) out.write(delta.data) else state.backend.writeDelta(out)

  /** Takes the changes of the open batch; on failure, declines. */
  private def prepare(version: Long, stateId: String, forceSnapshot: Boolean): Shipment =
    try {
      val start = System.nanoTime()
      val backend = state.backend
      state.commit(stateId)
      val size = backend.deltaSize
      val inline =
        Option.when(size <= locator.inlineLimit)(NewSegments.inline(version, version, backend.deltaBytes()))
      val taken = System.nanoTime()
      val delta = inline.getOrElse(
        GroupCommit.here.write(files, TaskContext.get(), version, size, locator.sharedFile)(backend.writeDelta))
      if (forceSnapshot) bases.writeNow(backend.snapshotBase())
      // The ack of a version that was committed before probably does not count; a base in it would be dropped.
      val waited = if (state.isRepeated) None else bases.forAck(backend.snapshotBase())
      Shipment(delta, waited, bases.inProgress, bases.lastFailure, taken - start, System.nanoTime() - taken,
        Option.when(restored.segments > 0)(restored.nanos))
    } catch {
      case e: Throwable =>
        messages.decline(version, e)
        throw e
    }

  /** True if a base waits for the next ack. */
  def waitingBase: Boolean = bases.isReady

  /** The failure of the last base or merge, until the coordinator knows of it. */
  def compactionFailure: Option[Throwable] = bases.lastFailure

  /** Keeps or forgets the version in memory, depending on the outcome of its ack (docs/protocol.md, section 1.3). */
  private def settle(outcome: String, version: Long, stateId: String, counted: String, reason: => String): Unit =
    outcome match {
      case AckReply.Success => state.keepCommit()
      case AckReply.Duplicate if counted == stateId => state.keepCommit()
      case AckReply.Duplicate => state.forgetCommit()
      case refusal => throw messages.refused(refusal, version, reason)
    }

  // ---- freeing ----

  /**
   * Frees state that is no longer needed (docs/protocol.md, section 1.4). No task that may still count reads it; a
   * store that is asked for it loads it again.
   */
  override def notified(notification: Notification): Unit = turn.orLater {
    val version = notification.version.getOrElse(-1L)
    if (!state.isEmpty) notification.event match {
      // Another executor continues with this partition.
      case Notification.Complete if state.backend.version < version - 1 => release()
      case Notification.Complete if state.backend.version == version - 1 && state.hasCommitted =>
        // This thread serves all queries, and has no time to load.
        if (!state.isPending) state.fold()
      case Notification.Complete if state.backend.version == version =>
        val gone = isGone
        state.loadRestLater(() => !gone.get())
      case Notification.Aborted if state.isAt(version - 1) => state.forgetAborted()
      case Notification.Ended => release()
      case _ =>
    }
  }

  private def release(): Unit = {
    forgetWork()
    state.release()
  }

  private def forgetWork(): Unit = {
    bases.forget()
    recent.clear()
  }

  /**
   * Spark unloads a store even while a task uses it, when a copy of the task starts on another executor. The task may
   * still be the one that counts, so the state goes with its last reference.
   */
  def close(): Unit = {
    closed = true
    isGone.set(true)
    StateMemory.remove(this)
    bases.close()
    recent.clear()
  }

  // ---- metrics ----

  override def memoryBytes: Long = state.memoryBytes

  /** A store whose lock is taken sheds at the end of that turn. An error there loses the state, not the caller's. */
  override def evict(): Unit = turn.orLater(state.evict())

  def metrics(batch: Option[CommittedBatch], forced: Boolean): StateStoreMetrics = {
    val rows = batch.fold(state.stateRows)(_.rows)
    SnapshotVersionMetric.metrics(rows, memoryBytes, StoreMetrics.of(batch, forced), id, newestBase.version)
  }

  override def toString: String = s"SubtaskStore[$id]"
}
