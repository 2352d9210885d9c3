// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.locate

import io.github.sparkckpt.engine.segment.{DeltaEntries, DeltaEntry, RowFilter, StateSegment}

import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.ckpt.files.StateFiles
import org.apache.spark.sql.ckpt.protocol.SegmentRef

/** A delta, and its rows that count. */
private[ckpt] final case class FilteredDelta(segment: SegmentRef, rows: RowFilter) {

  /** The version that it leads to. */
  def version: Long = segment.version
}

/**
 * Deltas of one store. Those since a checkpoint's newest base are in its `_metadata`; older ones are in that of the
 * base's checkpoint, if retained. The same holds for deltas that were merged into one: they are in the `_metadata` of
 * the last of their versions.
 *
 * @param locate location of the state of a version
 */
private[ckpt] final class StateDeltas(
    store: String,
    locate: Long => StateLocation,
    files: StateFiles,
    partitions: RowPartitions) {

  /**
   * Deltas from one version to another, oldest first. A batch without changes has none.
   *
   * @param end       location of the state of version `until`
   * @param ofBatches true if each must be of one batch
   * @throws CheckpointFailure if no retained checkpoint has a delta
   */
  def between(from: Long, until: Long, end: StateLocation, ofBatches: Boolean): List[FilteredDelta] = {
    val (bases, deltas) = end.segments.filter(_.offsets.nonEmpty).partition(_.isBase)
    val newer = deltas.toList
      .filter(_.version > from)
      .map(delta => FilteredDelta(delta, partitions.filter(end, delta)))
    // Changes until here are in a base or in merged deltas, and not kept separately by this checkpoint.
    val joint = newer.filter(delta => delta.segment.covers > 1 && (ofBatches || delta.segment.firstVersion <= from))
    val reach = (bases.map(_.version) ++ joint.map(_.version)).maxOption.getOrElse(0L)
    if (reach <= from) newer
    else if (reach < until) {
      between(from, reach, ofSameRows(reach, earlier(reach, until), end), ofBatches) ++ newer.filter(_.version > reach)
    } else {
      throw new CheckpointFailure("CheckpointNotFoundError",
        s"the changes of batch ${until - 1} to $store went into a base and are not kept separately: " +
          "request later batches")
    }
  }

  private def earlier(version: Long, until: Long): StateLocation =
    try locate(version) catch {
      case e: CheckpointFailure if e.error == "CheckpointNotFoundError" || e.error == "VersionNotFoundError" =>
        throw new CheckpointFailure("CheckpointNotFoundError",
          s"the changes of batch ${version - 1} and before to $store went into a base or into merged deltas, and " +
            s"cannot be told apart: ${e.reason}. Batches $version to ${until - 1} are available: request these, or " +
            "raise spark.sql.streaming.stateStore.ckpt.retained", e)
    }

  /**
   * Location of the state of an earlier version, if the subtask had the same rows.
   *
   * @throws CheckpointFailure if it had not, because of a rescale in between
   */
  def ofSameRows(version: Long, found: StateLocation, end: StateLocation): StateLocation = {
    if (found.parallelism != end.parallelism) {
      throw new CheckpointFailure("CheckpointNotFoundError",
        s"version $version of $store has ${found.parallelism.mkString} partitions, and ${end.parallelism.mkString} " +
          "after it: the query was rescaled in between. Request batches after it only, or before it only")
    }
    found
  }

  /** Entries of a column family in a delta. */
  def read(delta: FilteredDelta, family: String): Seq[DeltaEntry] = {
    val source = files.source(delta.segment)
    try {
      val opened = StateSegment(isBase = false, source, delta.segment.offsets, delta.rows)
      DeltaEntries.read(opened, delta.version, family)
    } finally source.close()
  }
}
