// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.execution.streaming.runtime.StreamExecution

/**
 * Runs of queries, as the provider has seen each on its own thread. Spark lists the active ones by shared state, of
 * which an application has one for each root session. A run is forgotten at its end. Thread-safe.
 */
private[driver] final class SeenRuns {
  private val runs = new ConcurrentHashMap[String, StreamExecution]()

  /** A run is active, on this thread or one that it has started. */
  def saw(run: StreamExecution): Unit = {
    val id = run.runId.toString
    runs.put(id, run)
    // A thread that it has started may be late: the event of its end has come then.
    if (!run.isActive) ended(id)
  }

  /** The execution of an active run. */
  def active(runId: String): Option[StreamExecution] = Option(runs.get(runId)).filter(_.isActive)

  /** The execution of an active run whose checkpoint location has this path. */
  def ofPath(path: Path): Option[StreamExecution] = {
    val above = Iterator.iterate(path)(_.getParent).takeWhile(_ != null).map(_.toUri).toSet
    runs.values.asScala.find(run => run.isActive && above(new Path(run.resolvedCheckpointRoot).toUri))
  }

  /** A run has ended. */
  def ended(runId: String): Unit = runs.remove(runId)
}
