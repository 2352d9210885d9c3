// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import java.util.concurrent.TimeUnit.NANOSECONDS

import io.github.sparkckpt.engine.pages.LocalTier

import org.apache.spark.sql.execution.streaming.state._

/**
 * A batch that counts.
 *
 * @param stateId     id of the state that it led to; of another attempt's state if that one counts
 * @param baseStateId id of the state that it started from, empty at version 0
 * @param rows        rows of the operator's state
 * @param indexRows   rows of its internal column families
 */
private[ckpt] final case class CommittedBatch(
    version: Long,
    stateId: String,
    baseStateId: String,
    rows: Long,
    indexRows: Long,
    commit: CommitCost,
    restore: RestoreCost,
    local: LocalCost)

/**
 * Cost of a commit.
 *
 * @param snapshotNanos    time to take the changes of the batch; up to `ackThreshold` bytes, including their
 *                         serialisation
 * @param writeNanos       time to write files
 * @param acknowledgeNanos time from sending the ack until its reply
 * @param compactionFailures bases and merges that failed since the last batch that counted
 */
private[ckpt] final case class CommitCost(
    snapshotNanos: Long,
    writeNanos: Long,
    acknowledgeNanos: Long,
    deltaBytes: Long,
    baseBytes: Long,
    compactionFailures: Long)

/**
 * Cost of a load.
 *
 * @param bytes    bytes read, from files or from the reply
 * @param segments bases and deltas read
 */
private[ckpt] final case class RestoreCost(nanos: Long, bytes: Long, segments: Long) {
  def +(other: RestoreCost): RestoreCost =
    RestoreCost(nanos + other.nanos, bytes + other.bytes, segments + other.segments)
}

private[ckpt] object RestoreCost {
  val Nothing: RestoreCost = RestoreCost(0, 0, 0)
}

/**
 * Use of the local disk.
 *
 * @param bytes        bytes of state there
 * @param reads        reads
 * @param readBytes    bytes read
 * @param writtenBytes bytes written
 */
private[ckpt] final case class LocalCost(bytes: Long, reads: Long, readBytes: Long, writtenBytes: Long) {

  /** The same, of the time since an earlier moment. */
  def since(earlier: LocalCost): LocalCost = LocalCost(
    bytes, reads - earlier.reads, readBytes - earlier.readBytes, writtenBytes - earlier.writtenBytes)
}

private[ckpt] object LocalCost {
  val Nothing: LocalCost = LocalCost(0, 0, 0, 0)

  def of(tier: LocalTier, bytes: Long): LocalCost = LocalCost(bytes, tier.reads, tier.readBytes, tier.writtenBytes)
}

/** Custom metrics of a store, which a query's progress has per operator (docs/metrics.md). */
private[ckpt] object StoreMetrics {
  private val snapshotTime = time("ckptSnapshotTimeMs", "time to take the changes of the batch")
  private val writeTime = time("ckptWriteTimeMs", "time to write files in the task")
  private val acknowledgeTime = time("ckptAcknowledgeTimeMs", "time until the coordinator answered")
  private val deltaBytes = size("ckptDeltaBytes", "bytes of the changes of the batch")
  private val baseBytes = size("ckptBaseBytes", "bytes of bases that went with the batch")
  private val baseFailures: StateStoreCustomMetric =
    StateStoreCustomSumMetric("ckptBaseFailures", "checkpoint: base snapshots that failed")

  private val restoreTime = time("ckptRestoreTimeMs", "time to load state for the batch")
  private val restoredBytes = size("ckptRestoredBytes", "bytes loaded for the batch")
  private val restoredSegments: StateStoreCustomMetric =
    StateStoreCustomSumMetric("ckptRestoredSegments", "checkpoint: bases and deltas loaded for the batch")

  private val indexRows: StateStoreCustomMetric =
    StateStoreCustomSumMetric("ckptIndexRows", "checkpoint: rows of internal column families")

  private val localBytes = size("ckptLocalBytes", "bytes of state on the local disk")
  private val localReads: StateStoreCustomMetric =
    StateStoreCustomSumMetric("ckptLocalReads", "checkpoint: reads of state on the local disk")
  private val localReadBytes = size("ckptLocalReadBytes", "bytes of state read from the local disk")
  private val localWrittenBytes = size("ckptLocalWrittenBytes", "bytes of state written to the local disk")

  // Spark's own name.
  private val forcedSnapshots: StateStoreCustomMetric =
    StateStoreCustomSumMetric("forceSnapshotCount", "number of stores that had forced snapshot")

  val all: Seq[StateStoreCustomMetric] = Seq(snapshotTime, writeTime, acknowledgeTime, deltaBytes, baseBytes,
    baseFailures, restoreTime, restoredBytes, restoredSegments, indexRows, localBytes, localReads, localReadBytes,
    localWrittenBytes, forcedSnapshots)

  /** All of them, 0 until a batch counts. */
  def of(batch: Option[CommittedBatch], forced: Boolean): Map[StateStoreCustomMetric, Long] = {
    def commit(figure: CommitCost => Long): Long = batch.fold(0L)(b => figure(b.commit))
    def restore(figure: RestoreCost => Long): Long = batch.fold(0L)(b => figure(b.restore))
    Map(
      snapshotTime -> NANOSECONDS.toMillis(commit(_.snapshotNanos)),
      writeTime -> NANOSECONDS.toMillis(commit(_.writeNanos)),
      acknowledgeTime -> NANOSECONDS.toMillis(commit(_.acknowledgeNanos)),
      deltaBytes -> commit(_.deltaBytes),
      baseBytes -> commit(_.baseBytes),
      baseFailures -> commit(_.compactionFailures),
      restoreTime -> NANOSECONDS.toMillis(restore(_.nanos)),
      restoredBytes -> restore(_.bytes),
      restoredSegments -> restore(_.segments),
      localBytes -> batch.fold(0L)(_.local.bytes),
      localReads -> batch.fold(0L)(_.local.reads),
      localReadBytes -> batch.fold(0L)(_.local.readBytes),
      localWrittenBytes -> batch.fold(0L)(_.local.writtenBytes),
      indexRows -> batch.fold(0L)(_.indexRows),
      forcedSnapshots -> (if (forced) 1L else 0L))
  }

  private def time(name: String, what: String): StateStoreCustomMetric =
    StateStoreCustomTimingMetric(name, s"checkpoint: $what")

  private def size(name: String, what: String): StateStoreCustomMetric =
    StateStoreCustomSizeMetric(name, s"checkpoint: $what")
}
