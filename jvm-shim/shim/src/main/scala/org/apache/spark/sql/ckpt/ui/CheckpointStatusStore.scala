// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

import org.apache.spark.status.KVUtils
import org.apache.spark.status.KVUtils.KVIndexParam
import org.apache.spark.util.kvstore.KVStore

/**
 * Checkpoints of one run of a query, in Spark's status store. Reports are JSON text, so a store on disk holds them too.
 *
 * @param sequence     place of the run among those of the application
 * @param inProgress   number of the checkpoint in progress; -1 if there is none
 * @param isFenced     whether another driver has taken over
 * @param started      newest report of its start, empty without one
 * @param lastReport   newest report, without operators and subtasks
 * @param lastCompleted newest report of each kind, without operators and subtasks; empty without one
 */
private[ui] final class RunStatus(
    @KVIndexParam val runId: String,
    val sequence: Long,
    val isActive: Boolean,
    val isFenced: Boolean,
    val triggered: Long,
    val completed: Long,
    val failed: Long,
    val restored: Long,
    val inProgress: Long,
    val started: String,
    val lastReport: String,
    val lastCompleted: String,
    val lastFailed: String,
    val lastRestored: String,
    val lastSavepoint: String)

/**
 * A checkpoint of a run.
 *
 * @param number place of the checkpoint among those of its run
 * @param report its newest report, without subtasks
 */
private[ui] final class CheckpointStatus(
    @KVIndexParam val key: String,
    @KVIndexParam("run") val runId: String,
    val number: Long,
    val report: String)

/** The newest report of a checkpoint, with subtasks. There are fewer of these than of checkpoints. */
private[ui] final class CheckpointDetails(@KVIndexParam val key: String, val report: String)

/** What the pages show, read from Spark's status store. */
private[ui] final class CheckpointStatusStore(store: KVStore) {

  /** Runs, oldest first. */
  def runs: Seq[RunStatus] = KVUtils.viewToSeq(store.view(classOf[RunStatus])).sortBy(_.sequence)

  def run(runId: String): Option[RunStatus] = read(classOf[RunStatus], runId)

  /** Checkpoints of a run, oldest first. */
  def checkpoints(runId: String): Seq[CheckpointStatus] =
    KVUtils
      .viewToSeq(store.view(classOf[CheckpointStatus]).index("run").first(runId).last(runId))
      .sortBy(_.number)

  /** Newest reports of the checkpoints of a run, oldest first, without subtasks. */
  def reports(runId: String): Seq[CheckpointReport] =
    checkpoints(runId).map(checkpoint => CheckpointReport.of(checkpoint.report))

  def checkpoint(key: String): Option[CheckpointStatus] = read(classOf[CheckpointStatus], key)

  def details(key: String): Option[CheckpointDetails] = read(classOf[CheckpointDetails], key)

  private def read[T](kind: Class[T], key: String): Option[T] =
    try Some(store.read(kind, key)) catch { case _: NoSuchElementException => None }
}

private[ui] object CheckpointStatusStore {
  def key(runId: String, number: Long): String = s"$runId-$number"
}
