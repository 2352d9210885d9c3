// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.compat.CoordinatorReports
import org.apache.spark.sql.execution.streaming.state.StateStoreProviderId

/**
 * Reports of snapshots to Spark's `StateStoreCoordinator`. It warns of a store that has not reported one for long, and
 * makes it write all its state with each commit (`forceSnapshotUploadOnLag`, on by default).
 *
 * Our coordinator decides when a base is due and bounds the deltas since. So each version that counts restores about as
 * quickly as a snapshot.
 *
 * The interval is a JVM matter: only Spark knows how many versions make a lag (`minDeltasForSnapshot`).
 *
 * @param every versions between two reports; the first commit of a run always reports
 */
private[ckpt] final class SnapshotReports(id: StateStoreProviderId, every: Int) extends Logging {
  private var due = 0L

  /** A version was committed, and counts. */
  def committed(version: Long): Unit = if (version >= due) {
    due = version + every
    try CoordinatorReports.snapshot(id, version)
    catch {
      case NonFatal(e) => logWarning(s"cannot report version $version of $id to Spark's coordinator", e)
    }
  }
}
