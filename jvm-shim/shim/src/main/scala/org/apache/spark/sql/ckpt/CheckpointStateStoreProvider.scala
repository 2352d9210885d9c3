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

import java.util.UUID

import org.apache.hadoop.conf.Configuration

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.ckpt.backend._
import org.apache.spark.sql.ckpt.driver.CheckpointDriver
import org.apache.spark.sql.ckpt.executor._
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.NextIterator

/**
 * Spark's entry to spark-ckpt: the class to name in `spark.sql.streaming.stateStore.providerClass`.
 *
 * It brings the state of one store of one subtask to the version that Spark asks for, and sends what a batch changed to
 * the checkpoint coordinator on the driver. It decides nothing about checkpoints.
 *
 * Threads: Spark opens and commits stores from task threads, one batch at a time, but an attempt that was given up may
 * still be running. Opening, committing and discarding hold this object's lock; reads and writes of rows hold none, and
 * are fenced by `epoch`.
 */
class CheckpointStateStoreProvider extends StateStoreProvider with SupportsFineGrainedReplay with NotifiedStore {

  CheckpointDriver.onProviderConstructed()

  private var storeId: StateStoreId = _
  private var storeConf: StateStoreConf = _
  private var hadoopConf: Configuration = _
  private[ckpt] var families: FamilySchemas = _
  private var job: StoreJob = _
  private var messages: CommitMessages = _
  private var locator: StateLocator = _
  private var files: StateFiles = _
  private var deltas: StateDeltas = _
  private var bases: BaseSnapshots = _
  private var state: HeldState = _
  private var snapshotReports: Option[SnapshotReports] = None
  private var ackThreshold = 0L
  private var timeoutSeconds = 0L
  private var closed = false

  /** What was loaded since the last batch that counts. */
  private var restored = RestoreCost.Nothing

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
    this.storeId = stateStoreId
    this.storeConf = storeConfs
    this.hadoopConf = hadoopConf
    val settings = storeConfs.sqlConfs.filter(_._1.startsWith(Settings.Prefix))
    ackThreshold = Settings.long(settings, Settings.AckThreshold, Settings.DefaultAckThreshold)
    timeoutSeconds = Settings.long(settings, Settings.BridgeTimeout, Settings.DefaultBridgeTimeoutSeconds)
    val default = FamilyDefinition(StateStore.DEFAULT_COL_FAMILY_NAME,
      keySchema, valueSchema, keyStateEncoderSpec, useMultipleValuesPerKey, isInternal = false)
    families = new FamilySchemas(
      useColumnFamilies, ValueEncoding.of(storeConfs.stateStoreEncodingFormat, stateSchemaProvider), default)
    job = StoreJob.of(stateStoreId, hadoopConf.get(StreamExecution.RUN_ID_KEY), settings, hadoopConf)
    messages = new CommitMessages(job)
    files = new StateFiles(job.ckptDirectory, hadoopConf)
    locator = new StateLocator(job, files, timeoutSeconds)
    val partitions = new RowPartitions(stateStoreId, default, hadoopConf)
    deltas = new StateDeltas(stateStoreId.toString, locate(_, None), files, partitions)
    bases = new BaseSnapshots(files, ackThreshold)
    state = new HeldState(stateStoreId, families, files, partitions, Settings.tellsWrites(settings))
    job match {
      case query: QueryJob =>
        LoadedStores.here.add(query.runId, this)
        if (storeConfs.reportSnapshotUploadLag) {
          val id = StateStoreProviderId(stateStoreId, UUID.fromString(query.runId))
          snapshotReports = Some(new SnapshotReports(id, storeConfs.minDeltasForSnapshot))
        }
      case _: StandaloneJob => CheckpointDriver.ensureStartedForStore(settings)
      case _: ReaderJob =>
    }
    // The `statestore` data source finds the partitions of a query by the folders that its stores have.
    files.makeDirectory(stateStoreId.storeCheckpointLocation())
  }

  override def stateStoreId: StateStoreId = storeId

  // ---- opening ----

  override def getStore(
      version: Long,
      stateStoreCkptId: Option[String],
      forceSnapshotOnCommit: Boolean,
      loadEmpty: Boolean): StateStore = synchronized {
    bringTo(version, stateStoreCkptId)
    val store = openForWrite(version, forceSnapshotOnCommit)
    // The delta then names each key that goes, so the version before has to be there.
    if (loadEmpty) state.backend.familyNames.foreach(state.backend.dropFamily)
    store
  }

  override def getReadStore(version: Long, uniqueId: Option[String]): ReadStateStore = synchronized {
    bringTo(version, uniqueId)
    new CheckpointReadStore(this, version)
  }

  override def upgradeReadStoreToWriteStore(
      readStore: ReadStateStore,
      version: Long,
      uniqueId: Option[String],
      forceSnapshotOnCommit: Boolean): StateStore = synchronized {
    // Same task, same version: what the read store was told is still true unless another attempt came in between.
    if (readStore.version != version || !state.isAt(version)) bringTo(version, uniqueId)
    openForWrite(version, forceSnapshotOnCommit)
  }

  private def openForWrite(version: Long, forceSnapshot: Boolean): StateStore = {
    state.openForWrite(version)
    GroupCommit.here.enter(files.directory, TaskContext.get())
    new CheckpointStateStore(this, version, state.epoch, forceSnapshot)
  }

  // ---- replaying ----

  override def replayStateFromSnapshot(
      snapshotVersion: Long,
      endVersion: Long,
      readOnly: Boolean,
      snapshotId: Option[String],
      endId: Option[String]): StateStore = synchronized {
    replay(snapshotVersion, endVersion, snapshotId, endId)
    openForWrite(endVersion, forceSnapshot = false)
  }

  override def replayReadStateFromSnapshot(
      snapshotVersion: Long,
      endVersion: Long,
      snapshotId: Option[String],
      endId: Option[String]): ReadStateStore = synchronized {
    replay(snapshotVersion, endVersion, snapshotId, endId)
    new CheckpointReadStore(this, endVersion)
  }

  /** Makes the backend hold a version by what an earlier checkpoint has and the deltas since. */
  private def replay(from: Long, until: Long, fromId: Option[String], untilId: Option[String]): Unit = {
    if (from < 1) throw QueryExecutionErrors.unexpectedStateStoreVersion(from)
    if (until < from) throw QueryExecutionErrors.unexpectedStateStoreVersion(until)
    val end = locate(until, untilId)
    val chain = deltas.between(from, until, end)
    load(from, deltas.ofSameRows(from, locate(from, fromId), end))
    restored = state.advance(until, end.copy(segments = chain.map(_.segment)))
  }

  override def getStateStoreChangeDataReader(
      startVersion: Long,
      endVersion: Long,
      columnFamily: Option[String],
      endId: Option[String]): NextIterator[(RecordType.Value, UnsafeRow, UnsafeRow, Long)] = synchronized {
    val name = columnFamily.getOrElse(StateStore.DEFAULT_COL_FAMILY_NAME)
    val schema = families.get("getStateStoreChangeDataReader", name)
    new ChangeFeed(schema, deltas, deltas.between(startVersion - 1, endVersion, locate(endVersion, endId)))
  }

  /** Where the state of a version is, also if it is in memory. */
  private def locate(version: Long, stateId: Option[String]): StateLocation =
    locator.locate(version, stateId, held = None).get

  // ---- loading ----

  /** Makes a version the folded one in memory, with the state that the coordinator says it has. */
  private def bringTo(version: Long, stateId: Option[String]): Unit = {
    if (version < 0) throw QueryExecutionErrors.unexpectedStateStoreVersion(version)
    locator.locate(version, stateId, state.idOf(version))
      .filterNot(state.matches(version, _))
      .foreach(load(version, _))
    if (!state.isAt(version)) state.fold()
  }

  private def load(version: Long, found: StateLocation): Unit = {
    bases.forget()
    restored = state.load(version, found)
  }

  // ---- what stores ask of their provider ----

  private[ckpt] def familyNames: Set[String] =
    synchronized(if (state.isEmpty) Set.empty else state.backend.familyNames)

  private[ckpt] def readerAt(schema: FamilySchema, version: Long): FamilyReader =
    synchronized(state.reader(schema, version))

  private[ckpt] def familyForWrite(store: CheckpointStateStore, schema: FamilySchema): KeyedFamily =
    inBatchOf(store)(state.family(schema))

  private[ckpt] def createFamily(store: CheckpointStateStore, definition: FamilyDefinition): Boolean =
    inBatchOf(store)(state.createFamily(definition))

  private[ckpt] def dropFamily(store: CheckpointStateStore, name: String): Boolean =
    inBatchOf(store)(state.dropFamily(name))

  private[ckpt] def discard(store: CheckpointStateStore): Unit =
    synchronized(if (store.epoch == state.epoch) state.discard())

  /** With the lock, because a batch that another attempt opens in between must not be changed. */
  private def inBatchOf[A](store: CheckpointStateStore)(body: => A): A = synchronized {
    checkCurrent(store)
    body
  }

  /** @throws StoreUsageFailure if a store is a leftover of an attempt that was given up */
  private[ckpt] def checkCurrent(store: CheckpointStateStore): Unit =
    if (store.epoch != state.epoch) throw state.superseded(store.version)

  // ---- committing ----

  /** Sends the changes of the open batch to the coordinator and keeps them if they count. */
  private[ckpt] def commit(store: CheckpointStateStore, forceSnapshot: Boolean): CommittedBatch = inBatchOf(store) {
    val version = store.version + 1
    val stateId = UUID.randomUUID().toString.replace("-", "")
    val batch = try {
      val shipment = prepare(version, forceSnapshot)
      val asked = System.nanoTime()
      val ack = messages.ack(version, stateId, state.baseId, state.backend, shipment)
      val reply = CoordinatorClient.ask(ack, timeoutSeconds).json
      val counted = reply.path("ckpt_id").asText(stateId)
      settle(reply.path("outcome").asText(), version, stateId, counted, reply.path("reason").asText("no reason was given"))
      if (reply.path("base_due").asBoolean(false)) startBase()
      val cost = CommitCost(shipment.snapshotNanos, shipment.writeNanos, System.nanoTime() - asked,
        shipment.delta.info.bytes, shipment.base.fold(0L)(_.segment.info.bytes))
      CommittedBatch(version, counted, state.baseId, state.stateRows, state.indexRows, cost, restored)
    } catch {
      case e: Throwable =>
        state.forgetCommit()
        throw e
    }
    restored = RestoreCost.Nothing
    snapshotReports.foreach(_.committed(version))
    if (storeConf.commitValidationEnabled) StateStore.reportCommitToCoordinator(version, storeId, hadoopConf)
    batch
  }

  /** Takes the changes of the open batch; declines if it cannot. */
  private def prepare(version: Long, forceSnapshot: Boolean): Shipment =
    try {
      val start = System.nanoTime()
      val backend = state.backend
      backend.commit()
      val inline = if (backend.deltaSize <= ackThreshold) Some(ShippedSegment.inline(backend.deltaBytes())) else None
      val taken = System.nanoTime()
      val delta = inline.getOrElse(
        GroupCommit.here.write(files, TaskContext.get(), backend.deltaSize)(backend.writeDelta))
      if (forceSnapshot) bases.writeNow(backend.snapshotBase(), state.baseId)
      // The ack of a version that has committed before is likely not to count, and what comes with it is dropped.
      val base = if (!state.isRepeated) bases.take() else None
      Shipment(delta, base, taken - start, System.nanoTime() - taken)
    } catch {
      case e: Throwable =>
        messages.decline(version, e)
        throw e
    }

  /** What an ack's outcome means for the version in memory (docs/protocol.md, section 1.3). */
  private def settle(outcome: String, version: Long, stateId: String, counted: String, reason: => String): Unit =
    outcome match {
      case "success" => state.keepCommit(stateId)
      case "duplicate" if counted == stateId => state.keepCommit(stateId)
      case "duplicate" => state.forgetCommit()
      case refusal => throw messages.refused(refusal, version, reason)
    }

  private def startBase(): Unit =
    if (bases.isIdle && !closed) bases.start(state.backend.snapshotBase(), state.baseId)

  // ---- freeing ----

  /**
   * Frees what nothing needs any more (docs/protocol.md, section 1.4). No task of the run that may still count reads what
   * is freed here; a store that is asked for it all the same loads it again.
   */
  override def notified(notification: Notification): Unit = synchronized {
    val version = notification.version
    if (!state.isEmpty) notification.event match {
      // Another executor has gone on with this partition.
      case Notification.Complete if state.backend.version < version - 1 => release()
      case Notification.Complete if state.backend.version == version - 1 && state.hasCommitted => state.fold()
      case Notification.Aborted if state.isAt(version - 1) => state.forgetAborted()
      case Notification.Ended => release()
      case _ =>
    }
  }

  private def release(): Unit = {
    bases.forget()
    state.release()
  }

  /**
   * Spark unloads a store also while a task works with it, when a copy of the task has begun on another executor. The task
   * may be the one that counts; the state goes with the last reference to it.
   */
  override def close(): Unit = synchronized {
    closed = true
    if (bases != null) bases.forget()
  }

  // ---- metrics ----

  override def supportedCustomMetrics: Seq[StateStoreCustomMetric] = {
    CheckpointDriver.checkQuery()
    StoreMetrics.all
  }

  private[ckpt] def metrics(batch: Option[CommittedBatch], forced: Boolean): StateStoreMetrics = synchronized {
    val rows = batch.fold(state.stateRows)(_.rows)
    StateStoreMetrics(rows, state.memoryBytes, StoreMetrics.of(batch, forced))
  }

  override def toString: String = s"CheckpointStateStoreProvider[$storeId]"
}
