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

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration

import org.apache.spark.TaskContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.backend._
import org.apache.spark.sql.ckpt.driver.CheckpointDriver
import org.apache.spark.sql.ckpt.executor._
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType

/**
 * Spark's entry to spark-ckpt: the class to name in `spark.sql.streaming.stateStore.providerClass`.
 *
 * It owns the keyed state backend of one store of one subtask, brings it to the version that Spark asks for, and sends
 * what a batch changed to the checkpoint coordinator on the driver. It decides nothing about checkpoints.
 *
 * Threads: Spark opens and commits stores from task threads, one batch at a time, but an attempt that was given up may
 * still be running. Opening, committing and discarding hold this object's lock; reads and writes of rows hold none, and
 * are fenced by `epoch`.
 */
class CheckpointStateStoreProvider extends StateStoreProvider with NotifiedStore with Logging {
  import CheckpointStateStoreProvider._

  CheckpointDriver.onProviderConstructed()

  private var storeId: StateStoreId = _
  private var storeConf: StateStoreConf = _
  private var hadoopConf: Configuration = _
  private var schemas = Map.empty[String, FamilySchema]
  private var job: StoreJob = _
  private var messages: CommitMessages = _
  private var files: StateFiles = _
  private var bases: BaseSnapshots = _
  private var ackThreshold = 0L
  private var timeoutSeconds = 0L

  private var backend: HashMapStateBackend = _
  private var location: StateLocation = _

  /** Ids of the states in the backend: of its folded version, and of the committed version that is not folded yet. */
  private var foldedId = ""
  private var committedId: Option[String] = None

  /** The committed version while the version before it is open once more, and the id of its state. */
  private var aside: Option[(SetAsideChanges, String)] = None

  private var closed = false

  /** What was loaded since the last batch that counts. */
  private var restored = RestoreCost.Nothing

  /** Moves on whenever a store that was handed out before must not be used any more. */
  @volatile private[ckpt] var epoch = 0L

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
    if (useColumnFamilies) throw StateStoreErrors.multipleColumnFamiliesNotSupported(Name)
    this.storeId = stateStoreId
    this.storeConf = storeConfs
    this.hadoopConf = hadoopConf
    val settings = storeConfs.sqlConfs.filter(_._1.startsWith(Settings.Prefix))
    ackThreshold = Settings.long(settings, Settings.AckThreshold, Settings.DefaultAckThreshold)
    timeoutSeconds = Settings.long(settings, Settings.BridgeTimeout, Settings.DefaultBridgeTimeoutSeconds)
    schemas = Map(StateStore.DEFAULT_COL_FAMILY_NAME -> new FamilySchema(
      StateStore.DEFAULT_COL_FAMILY_NAME, keySchema, valueSchema, keyStateEncoderSpec, useMultipleValuesPerKey))
    job = StoreJob.of(stateStoreId, hadoopConf.get(StreamExecution.RUN_ID_KEY), settings, hadoopConf)
    job match {
      case query: QueryJob => LoadedStores.here.add(query.runId, this)
      case _: StandaloneJob => CheckpointDriver.ensureStartedForStore(settings)
      case _: ReaderJob =>
    }
    messages = new CommitMessages(job)
    files = new StateFiles(job.ckptDirectory, hadoopConf)
    bases = new BaseSnapshots(files, ackThreshold)
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
    if (loadEmpty) throw StateStoreErrors.unsupportedOperationException("getStore(loadEmpty)", Name)
    bringTo(version, stateStoreCkptId)
    openForWrite(version, forceSnapshotOnCommit)
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
    if (readStore.version != version || backend == null || backend.foldedVersion != version) {
      bringTo(version, uniqueId)
    }
    openForWrite(version, forceSnapshotOnCommit)
  }

  /**
   * A version is opened again after its batch has committed: by a foreachBatch function that uses its DataFrame twice, or
   * by another attempt. What was committed is kept, since it is likely to be what counts.
   */
  private def openForWrite(version: Long, forceSnapshot: Boolean): StateStore = {
    if (committedId.isDefined) aside = committedId.map((backend.setAside(), _))
    committedId = None
    backend.openForWrite(version)
    epoch += 1
    new CheckpointStateStore(this, version, epoch, forceSnapshot)
  }

  /** Makes the backend hold this version, folded, with the state that the coordinator says it has. */
  private def bringTo(version: Long, stateId: Option[String]): Unit = {
    if (version < 0) throw QueryExecutionErrors.unexpectedStateStoreVersion(version)
    val held = heldId(version)
    locate(version, stateId, held) match {
      case None =>
      case Some(found) if held.contains(found.stateId) && sameLayout(found) =>
      case Some(found) => reload(version, found)
    }
    if (backend.foldedVersion != version) fold()
  }

  private def fold(): Unit = {
    takeBack()
    backend.fold()
    foldedId = committedId.getOrElse("")
    committedId = None
    epoch += 1
  }

  private def heldId(version: Long): Option[String] =
    if (backend == null) None
    else if (version == backend.foldedVersion) Some(foldedId)
    else if (version == backend.foldedVersion + 1) committedId.orElse(aside.map(_._2))
    else None

  /** Makes what was set aside the committed version again, if nothing that counts has taken its place. */
  private def takeBack(): Unit = {
    if (committedId.isEmpty) aside.foreach { case (changes, id) =>
      backend.putBack(changes)
      committedId = Some(id)
    }
    aside = None
  }

  private def sameLayout(found: StateLocation): Boolean =
    location != null && java.util.Arrays.equals(location.factors, found.factors)

  /** None if the state that is held is the one that counts. */
  private def locate(version: Long, stateId: Option[String], held: Option[String]): Option[StateLocation] = job match {
    case _: ReaderJob => Some(new DirectoryLocator(files).locate(storeId, version))
    case _ => askWhere(version, stateId, held)
  }

  private def askWhere(version: Long, stateId: Option[String], held: Option[String]): Option[StateLocation] = {
    val header = job.header(version, job.batchOf(version))
    header.put("ckpt_id", stateId.orNull)
    held.filter(_.nonEmpty).foreach(header.put("have", _))
    val reply = CoordinatorClient.ask(Message("locate", header.toString), timeoutSeconds)
    if (reply.json.path("current").asBoolean(false)) None else Some(StateLocation.of(reply))
  }

  private def reload(version: Long, found: StateLocation): Unit = {
    val start = System.nanoTime()
    bases.forget()
    epoch += 1
    location = found
    committedId = None
    aside = None
    val numbering = new KeyGroupNumbering(found.factors)
    backend = new HashMapStateBackend(numbering.maxParallelism)
    val segments = new OpenSegments(found, files, partitionOf(found))
    try {
      backend.restore(version, found.rows, segments.open(), RestoreFilter.range(0, numbering.maxParallelism - 1))
    } catch {
      case e: OutOfMemoryError => throw QueryExecutionErrors.notEnoughMemoryToLoadStore(storeId.toString, Name, e)
      case e: StateStreamCorruptException => throw unreadable(version, e)
      case e: java.io.IOException => throw unreadable(version, e)
    } finally {
      segments.close()
    }
    schemas.values.foreach { schema =>
      backend.declareFamily(schema.spec(KeyGroupOfRow.of(numbering, found.operator, storeId.storeName, schema.name,
        schema.keySchema, found.stateFormatVersion, storeId.partitionId)))
    }
    foldedId = found.stateId
    restored = RestoreCost(System.nanoTime() - start, segments.bytesRead, found.segments.size)
    if (version > 0) {
      logInfo(s"loaded version $version of $storeId: ${restored.segments} segments, ${restored.bytes} bytes, " +
        s"${backend.rowCount} rows, ${restored.nanos / 1000000} ms")
    }
  }

  /** The partition of a row of a column family, for a number of partitions: asked only where segments have filters. */
  private def partitionOf(found: StateLocation)(family: String, parallelism: Int): PartitionOfKey = {
    val schema = familySchema(family)
    KeyGroupOfRow
      .partition(parallelism, found.operator, storeId.storeName, family, schema.keySchema, found.stateFormatVersion)
      .map(schema.partitionOf)
      .getOrElse(throw new CheckpointFailure("StateFileError",
        s"rows of ${found.operator} cannot be told by their partition, and its state is divided by it"))
  }

  /** Leaves nothing half-loaded behind, so that the next attempt starts from the files again. */
  private def unreadable(version: Long, cause: Exception): CheckpointFailure = {
    backend = null
    new CheckpointFailure("StateFileError",
      s"version $version of $storeId cannot be read from ${job.ckptDirectory}: ${cause.getMessage}. " +
        "Restore the file, or go back to an older checkpoint ('spark-ckpt list' shows which there are)", cause)
  }

  // ---- what stores ask of their provider ----

  private[ckpt] def familySchema(name: String): FamilySchema =
    schemas.getOrElse(name, throw StateStoreErrors.unsupportedOperationOnMissingColumnFamily("access", name))

  private[ckpt] def familyNames: Set[String] = schemas.keySet

  private[ckpt] def readerAt(name: String, version: Long): FamilyReader = synchronized {
    if (backend == null || backend.foldedVersion != version) throw superseded(version)
    familySchema(name)
    backend.reader(name, version)
  }

  private[ckpt] def familyForWrite(name: String): KeyedFamily = {
    familySchema(name)
    backend.family(name)
  }

  private[ckpt] def superseded(version: Long) = new StoreUsageFailure(
    s"version $version of $storeId was opened again by another attempt; this one was given up")

  private[ckpt] def discard(): Unit = synchronized {
    backend.discard()
    takeBack()
    epoch += 1
  }

  // ---- committing ----

  /** Sends the changes of the open batch to the coordinator and keeps them if they count. */
  private[ckpt] def commit(store: CheckpointStateStore, forceSnapshot: Boolean): CommittedBatch = synchronized {
    val version = store.version + 1
    val stateId = UUID.randomUUID().toString.replace("-", "")
    val batch = try {
      val shipment = prepare(version, forceSnapshot)
      val asked = System.nanoTime()
      val ack = messages.ack(version, stateId, foldedId, backend, shipment)
      val reply = CoordinatorClient.ask(ack, timeoutSeconds).json
      val counted = reply.path("ckpt_id").asText(stateId)
      settle(reply.path("outcome").asText(), version, stateId, counted, reply.path("reason").asText("no reason was given"))
      if (reply.path("base_due").asBoolean(false)) startBase()
      val cost = CommitCost(shipment.snapshotNanos, shipment.writeNanos, System.nanoTime() - asked,
        shipment.delta.info.bytes, shipment.base.fold(0L)(_.segment.info.bytes))
      CommittedBatch(version, counted, foldedId, backend.rowCount, cost, restored)
    } catch {
      case e: Throwable =>
        forgetCommit()
        throw e
    }
    restored = RestoreCost.Nothing
    if (storeConf.commitValidationEnabled) StateStore.reportCommitToCoordinator(version, storeId, hadoopConf)
    batch
  }

  /** Takes the changes of the open batch; declines if it cannot. */
  private def prepare(version: Long, forceSnapshot: Boolean): Shipment =
    try {
      val start = System.nanoTime()
      backend.commit()
      val inline = if (backend.deltaSize <= ackThreshold) Some(ShippedSegment.inline(backend.deltaBytes())) else None
      val taken = System.nanoTime()
      val delta = inline.getOrElse(ShippedSegment.inFile(files, "delta")(backend.writeDelta))
      if (forceSnapshot) bases.writeNow(backend.snapshotBase(), foldedId)
      // The ack of a version that has committed before is likely not to count, and what comes with it is dropped.
      val base = if (aside.isEmpty) bases.take() else None
      Shipment(delta, base, taken - start, System.nanoTime() - taken)
    } catch {
      case e: Throwable =>
        decline(version, e)
        throw e
    }

  /** A task that was killed has not failed: the driver tells its end itself. */
  private def decline(version: Long, cause: Throwable): Unit = {
    val context = TaskContext.get()
    if (context == null || !context.isInterrupted()) {
      try CoordinatorClient.tell(messages.decline(version, cause)) catch {
        case NonFatal(e) => cause.addSuppressed(e)
      }
    }
  }

  /** What an ack's outcome means for the version in memory (docs/protocol.md, section 1.3). */
  private def settle(outcome: String, version: Long, stateId: String, counted: String, reason: => String): Unit =
    outcome match {
      case "success" => keepCommit(stateId)
      case "duplicate" if counted == stateId => keepCommit(stateId)
      case "duplicate" => forgetCommit()
      case refusal => throw messages.refused(refusal, version, reason)
    }

  private def keepCommit(stateId: String): Unit = {
    committedId = Some(stateId)
    aside = None
  }

  /** The version before the commit is what the backend still has folded. */
  private def forgetCommit(): Unit = {
    committedId = None
    backend.discard()
    backend.undoCommit()
    takeBack()
    epoch += 1
  }

  private def startBase(): Unit =
    if (bases.isIdle && !closed) bases.start(backend.snapshotBase(), foldedId)

  // ---- freeing ----

  /**
   * Frees what nothing needs any more (docs/protocol.md, section 1.4). No task of the run that may still count reads what
   * is freed here; a store that is asked for it all the same loads it again.
   */
  override def notified(notification: Notification): Unit = synchronized {
    val version = notification.version
    if (backend != null) notification.event match {
      // Another executor has gone on with this partition.
      case Notification.Complete if backend.version < version - 1 => release()
      case Notification.Complete if backend.version == version - 1 && committedId.isDefined => fold()
      case Notification.Aborted if backend.foldedVersion == version - 1 => forgetAborted()
      case Notification.Ended => release()
      case _ =>
    }
  }

  /** A batch that is open stays: it is the next attempt's. */
  private def forgetAborted(): Unit = {
    aside = None
    if (committedId.isDefined) {
      committedId = None
      backend.undoCommit()
      epoch += 1
    }
  }

  private def release(): Unit = {
    bases.forget()
    backend = null
    epoch += 1
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

  override def supportedCustomMetrics: Seq[StateStoreCustomMetric] = StoreMetrics.all

  private[ckpt] def metrics(batch: Option[CommittedBatch], forced: Boolean): StateStoreMetrics = synchronized {
    val rows = batch.map(_.rows).getOrElse(if (backend == null) 0L else backend.rowCount)
    StateStoreMetrics(rows, if (backend == null) 0L else backend.memoryBytes, StoreMetrics.of(batch, forced))
  }

  override def toString: String = s"CheckpointStateStoreProvider[$storeId]"
}

private[ckpt] object CheckpointStateStoreProvider {
  val Name = "CheckpointStateStoreProvider"
}
