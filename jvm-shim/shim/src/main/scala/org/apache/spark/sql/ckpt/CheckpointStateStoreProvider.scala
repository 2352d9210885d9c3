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
package org.apache.spark.sql.ckpt

import java.io.OutputStream
import java.util.UUID
import java.util.concurrent.atomic.AtomicBoolean

import scala.concurrent.duration.FiniteDuration

import io.github.sparkckpt.engine.backend.{HashMapStateBackend, KeyedTable, TableReader}
import io.github.sparkckpt.engine.compaction.DeferredSnapshot
import io.github.sparkckpt.engine.pages.LocalTier
import org.apache.hadoop.conf.Configuration

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.ckpt.client.{CoordinatorClient, LoadedStores, NotifiedStore}
import org.apache.spark.sql.ckpt.common.{CheckpointFailure, Settings, SideBySide, SparkVersion, StateIds}
import org.apache.spark.sql.ckpt.compaction.{BaseSnapshots, RecentDeltas}
import org.apache.spark.sql.ckpt.compat._
import org.apache.spark.sql.ckpt.driver.CheckpointDriver
import org.apache.spark.sql.ckpt.families.{ColumnFamilies, ColumnFamily, ValueEncoding}
import org.apache.spark.sql.ckpt.files.{GroupCommit, NewSegments, StateFiles}
import org.apache.spark.sql.ckpt.locate._
import org.apache.spark.sql.ckpt.protocol._
import org.apache.spark.sql.ckpt.store._
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.NextIterator

/**
 * Spark's entry point to spark-ckpt, to be named in `spark.sql.streaming.stateStore.providerClass`.
 *
 * It loads the state of one store of one subtask at the version that Spark requests, and sends the changes of each
 * batch to the checkpoint coordinator on the driver. It decides nothing about checkpoints.
 *
 * Threads: Spark opens and commits stores from task threads. Several jobs may run on one batch at a time, and an
 * abandoned attempt may still be running. Changes of the state take turns ([[StoreTurn]]), including loads and waits
 * for the coordinator. Reads and writes of rows hold no lock; `epoch` fences them. Metrics, notifications and closing
 * never wait.
 */
class CheckpointStateStoreProvider
    extends StateStoreProvider
    with SupportsFineGrainedReplay
    with ProviderMethodsSince41
    with ProviderMethodsSince42
    with ProviderMethodsSince43
    with SnapshotVersionMetric
    with NotifiedStore
    with MemoryUser {

  // On another minor version of Spark, link nothing here: `supportedCustomMetrics`, Spark's next call, refuses that
  // version. This constructor runs through reflection, which would hide the message.
  if (SparkVersion.fits) CheckpointDriver.onProviderConstructed()

  private var storeId: StateStoreId = _
  private var storeConf: StateStoreConf = _
  private var hadoopConf: Configuration = _
  private[ckpt] var families: ColumnFamilies = _
  private var coordinator: CoordinatorClient = _
  private var job: StoreJob = _
  private var messages: CommitMessages = _
  private var locator: StateLocator = _
  private var files: StateFiles = _
  private var deltas: StateDeltas = _
  private var recent: RecentDeltas = _
  private var bases: BaseSnapshots = _
  private var state: HeldState = _
  private var turn: StoreTurn = _
  private var tier: Option[LocalTier] = None
  private var snapshotReports: Option[SnapshotReports] = None
  private var timeout: FiniteDuration = _
  private var isLazy = true

  /** Makes the store's directory, by which the `statestore` data source finds a query's partitions. */
  private var directory: SideBySide.Request[Unit] = _
  @volatile private var closed = false

  /** The same, for what must not keep the store alive. */
  private val isGone = new AtomicBoolean

  /** Cost of the loads since the last batch that counted. */
  private var restored = RestoreCost.Nothing
  private val newestBase = new NewestBase

  /** Figures of the local disk at the last batch that counted. */
  private var localBefore = LocalCost.Nothing

  private[ckpt] def epoch: Long = state.epoch

  override def init(
      stateStoreId: StateStoreId,
      keySchema: StructType,
      valueSchema: StructType,
      keyStateEncoderSpec: KeyStateEncoderSpec,
      useColumnFamilies: Boolean,
      storeConfs: StateStoreConf,
      hadoopConf: Configuration,
      useMultipleValuesPerKey: Boolean,
      stateSchemaProvider: Option[StateSchemaProvider]): Unit = {
    SparkVersion.check()
    this.storeId = stateStoreId
    this.storeConf = storeConfs
    this.hadoopConf = hadoopConf
    val settings = storeConfs.sqlConfs.filter(_._1.startsWith(Settings.Prefix))
    val ackThreshold = Settings.ackThreshold(settings)
    val codec = Settings.compression(settings)
    timeout = Settings.bridgeTimeout(settings)
    val default = ColumnFamily(StateStore.DEFAULT_COL_FAMILY_NAME,
      keySchema, valueSchema, keyStateEncoderSpec, useMultipleValuesPerKey, isInternal = false)
    families = new ColumnFamilies(
      useColumnFamilies, ValueEncoding.of(storeConfs.stateStoreEncodingFormat, stateSchemaProvider), default)
    coordinator = new CoordinatorClient(() => CheckpointDriver.withoutApplication)
    job = StoreJob.of(
      stateStoreId, hadoopConf.get(StreamExecution.RUN_ID_KEY), settings, hadoopConf, coordinator, timeout)
    messages = new CommitMessages(job, coordinator)
    files = new StateFiles(job.ckptDirectory, hadoopConf)
    locator = new StateLocator(
      job, coordinator, files, timeout, ackThreshold, storeConfs.enableStateStoreCheckpointIds)
    val partitions = new RowPartitions(stateStoreId, default, hadoopConf)
    deltas = new StateDeltas(stateStoreId.toString, locate(_, None), files, partitions)
    recent = new RecentDeltas(files.isRemote)
    bases = new BaseSnapshots(stateStoreId.toString, files, () => locator.inlineLimit, recent, codec)
    turn = new StoreTurn(stateStoreId, timeout)
    tier = Settings.memoryBudget(settings).map(LocalDisk.tier)
    state = new HeldState(stateStoreId, families, files, partitions,
      new HashMapStateBackend(
        _, Settings.tellsWrites(settings), tier.orNull, codec, checkTask = () => KilledTasks.check()),
      messages.unreadable(_, _, timeout))
    isLazy = Settings.restoresLazily(settings)
    job match {
      case query: QueryJob =>
        LoadedStores.here.add(query.runId, this)
        if (CoordinatorReports.wantsSnapshots(storeConfs)) {
          val id = StateStoreProviderId(stateStoreId, UUID.fromString(query.runId))
          snapshotReports = Some(new SnapshotReports(id, storeConfs.minDeltasForSnapshot))
        }
      case _: StandaloneJob => CheckpointDriver.ensureStartedForStore(settings)
      case _: ReaderJob =>
    }
    StateMemory.add(this)
    directory = SideBySide.beginIf(files.isRemote)(files.makeDirectory(stateStoreId.storeCheckpointLocation()))
  }

  override def stateStoreId: StateStoreId = storeId

  // ---- opening ----

  override def getStore(
      version: Long,
      stateStoreCkptId: Option[String],
      forceSnapshotOnCommit: Boolean,
      loadEmpty: Boolean): CheckpointStateStore = turn {
    turn.awaitOthers(state.epoch)
    bringTo(version, stateStoreCkptId)
    val store = openForWrite(version, forceSnapshotOnCommit)
    // The delta names each removed key, so the previous version must be loaded.
    if (loadEmpty) state.backend.familyNames.foreach(state.backend.dropFamily)
    store
  }

  override def getReadStore(version: Long, uniqueId: Option[String]): CheckpointReadStore = turn {
    // Readers of a version may run beside the task that writes it.
    if (!state.isAt(version)) turn.awaitOthers(state.epoch)
    bringTo(version, uniqueId)
    new CheckpointReadStore(this, version)
  }

  override def upgradeReadStoreToWriteStore(
      readStore: ReadStateStore,
      version: Long,
      uniqueId: Option[String],
      forceSnapshotOnCommit: Boolean): CheckpointStateStore = turn {
    turn.awaitOthers(state.epoch)
    // Same task and version: the read store's location still holds unless another attempt intervened.
    if (readStore.version != version || !state.isAt(version)) bringTo(version, uniqueId)
    openForWrite(version, forceSnapshotOnCommit)
  }

  private def openForWrite(version: Long, forceSnapshot: Boolean): CheckpointStateStore = {
    state.openForWrite(version)
    turn.opened(state.epoch)
    GroupCommit.here.enter(files.directory, TaskContext.get())
    new CheckpointStateStore(this, version, state.epoch, forceSnapshot)
  }

  // ---- replaying ----

  override def replayStateFromSnapshot(
      snapshotVersion: Long,
      endVersion: Long,
      readOnly: Boolean,
      snapshotId: Option[String],
      endId: Option[String]): CheckpointStateStore = turn {
    replay(snapshotVersion, endVersion, snapshotId, endId)
    openForWrite(endVersion, forceSnapshot = false)
  }

  override def replayReadStateFromSnapshot(
      snapshotVersion: Long,
      endVersion: Long,
      snapshotId: Option[String],
      endId: Option[String]): CheckpointReadStore = turn {
    replay(snapshotVersion, endVersion, snapshotId, endId)
    new CheckpointReadStore(this, endVersion)
  }

  /** Loads a version from an earlier checkpoint and the deltas since. */
  private def replay(from: Long, until: Long, fromId: Option[String], untilId: Option[String]): Unit = {
    if (from < 1) throw QueryExecutionErrors.unexpectedStateStoreVersion(from)
    if (until < from) throw QueryExecutionErrors.unexpectedStateStoreVersion(until)
    val end = locate(until, untilId)
    val chain = deltas.between(from, until, end, ofBatches = false)
    load(from, deltas.ofSameRows(from, locate(from, fromId), end), isLazy = false)
    restored = state.advance(until, end.copy(segments = chain.map(_.segment)))
  }

  override def getStateStoreChangeDataReader(
      startVersion: Long,
      endVersion: Long,
      columnFamily: Option[String],
      endId: Option[String]): NextIterator[(RecordType.Value, UnsafeRow, UnsafeRow, Long)] = turn {
    val name = columnFamily.getOrElse(StateStore.DEFAULT_COL_FAMILY_NAME)
    val family = families.get("getStateStoreChangeDataReader", name)
    val chain = deltas.between(startVersion - 1, endVersion, locate(endVersion, endId), ofBatches = true)
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
    found.filterNot(state.matches(version, _)).foreach(load(version, _, isLazy && !state.isBroken))
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

  private def load(version: Long, found: StateLocation, isLazy: Boolean): Unit = {
    forgetWork()
    restored = try state.load(version, found, isLazy) catch {
      case e: CheckpointFailure => throw messages.unreadable(version, e, timeout)
    }
    newestBase.loaded(version, found.segments.count(!_.isBase))
  }

  // ---- calls from stores ----

  /** True if a store checks the first row that it reads, as Spark's providers do without column families. */
  private[ckpt] def checksFormat: Boolean = storeConf.formatValidationEnabled && !families.useColumnFamilies

  private[ckpt] def checkFormat(family: ColumnFamily, key: UnsafeRow, value: UnsafeRow): Unit =
    RowFormat.validate(key, family.keySchema, value, family.valueSchema, storeId, storeConf)

  private[ckpt] def familyNames: Set[String] =
    turn(if (state.isEmpty) Set.empty else state.backend.familyNames)

  private[ckpt] def readerAt(family: ColumnFamily, version: Long): TableReader =
    turn(state.reader(family, version))

  private[ckpt] def tableForWrite(store: CheckpointStateStore, family: ColumnFamily): KeyedTable =
    inBatchOf(store)(state.table(family))

  private[ckpt] def createFamily(store: CheckpointStateStore, family: ColumnFamily): Boolean =
    inBatchOf(store)(state.createFamily(family))

  /** For a store that only reads. */
  private[ckpt] def describeFamily(family: ColumnFamily): Boolean = turn(state.createFamily(family))

  private[ckpt] def dropFamily(store: CheckpointStateStore, name: String): Boolean =
    inBatchOf(store)(state.dropFamily(name))

  /** Discards the batch without waiting: if another thread has its turn, that one does it at the end. */
  private[ckpt] def discard(store: CheckpointStateStore): Unit = turn.orLater {
    if (store.epoch == state.epoch) state.discard()
    turn.closed(store.epoch)
  }

  /** A change in a turn: another attempt may have opened a batch in between. */
  private def inBatchOf[A](store: CheckpointStateStore)(body: => A): A = turn {
    checkCurrent(store)
    body
  }

  /** @throws StoreUsageFailure if the store belongs to an abandoned attempt */
  private[ckpt] def checkCurrent(store: CheckpointStateStore): Unit =
    if (store.epoch != state.epoch) throw state.superseded(store.version)

  // ---- committing ----

  /** Sends the changes of the open batch to the coordinator, and keeps them if the ack counts. */
  private[ckpt] def commit(store: CheckpointStateStore, forceSnapshot: Boolean): CommittedBatch = inBatchOf(store) {
    val version = store.version + 1
    val stateId = StateIds.newId()
    val batch = try {
      directory.answer()
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
    CoordinatorReports.commit(storeId, version, storeConf, hadoopConf)
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
  private[ckpt] def waitingBase: Boolean = bases.isReady

  /** The failure of the last base or merge, until the coordinator knows of it. */
  private[ckpt] def compactionFailure: Option[Throwable] = bases.lastFailure

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
  override def close(): Unit = {
    closed = true
    isGone.set(true)
    StateMemory.remove(this)
    if (bases != null) bases.close()
    if (recent != null) recent.clear()
  }

  // ---- metrics ----

  override def supportedCustomMetrics: Seq[StateStoreCustomMetric] = {
    SparkVersion.check()
    CheckpointDriver.checkQuery()
    StoreMetrics.all
  }

  override def memoryBytes: Long = state.memoryBytes

  /** A store whose lock is taken sheds at the end of that turn. An error there loses the state, not the caller's. */
  override def evict(): Unit = turn.orLater(state.evict())

  private[ckpt] def metrics(batch: Option[CommittedBatch], forced: Boolean): StateStoreMetrics = {
    val rows = batch.fold(state.stateRows)(_.rows)
    SnapshotVersionMetric.metrics(rows, memoryBytes, StoreMetrics.of(batch, forced), storeId, newestBase.version)
  }

  override def toString: String = s"CheckpointStateStoreProvider[$storeId]"
}
