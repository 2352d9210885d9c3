// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.testing

import java.util.concurrent.TimeUnit

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.streaming.InternalOutputModes
import org.apache.spark.sql.classic.DataFrame
import org.apache.spark.sql.execution.streaming.sources.MemorySink
import org.apache.spark.sql.streaming.{StreamingQuery, Trigger}

/**
 * A running query whose trigger fires once per step of its clock, with its output in memory. `spark_ckpt.testing` calls
 * it through Py4J.
 *
 * @param output     result of the query
 * @param location   checkpoint location
 * @param outputMode `append`, `update` or `complete`
 * @param startMs    time of the first batch, in milliseconds since 1970 UTC
 */
final class SteppedQuery(output: DataFrame, location: String, outputMode: String, startMs: Long) {
  private val clock = new SteppingClock(startMs)
  private val sink = new MemorySink
  private var seen = -1L

  /** The query. */
  val query: StreamingQuery = output.sparkSession.sessionState.streamingQueryManager.startQuery(
    userSpecifiedName = None,
    userSpecifiedCheckpointLocation = Some(location),
    df = output,
    extraOptions = Map.empty,
    sink = sink,
    outputMode = InternalOutputModes(outputMode),
    recoverFromCheckpointLocation = true,
    trigger = Trigger.ProcessingTime(SteppedQuery.IntervalMs, TimeUnit.MILLISECONDS),
    triggerClock = clock)

  /**
   * Moves the clock, so that the trigger fires.
   *
   * @param ms milliseconds, at least 1
   */
  def step(ms: Long): Unit = clock.advance(ms)

  /**
   * Waits until the trigger has fired and its batch, if there was any, has ended.
   *
   * @param timeoutMs longest wait
   * @return false after the timeout
   */
  def awaitIdle(timeoutMs: Long): Boolean = clock.awaitIdle(timeoutMs, () => !query.isActive)

  /** Time of the clock, in milliseconds since 1970 UTC. */
  def timeMs: Long = clock.getTimeMillis()

  /** Rows of the batches since the last call. */
  def newRows(): DataFrame = {
    val rows = sink.dataSinceBatch(seen)
    seen = sink.latestBatchId.getOrElse(seen)
    output.sparkSession.createDataFrame(rows.asJava, output.schema)
  }
}

private object SteppedQuery {

  /** Interval of the trigger in milliseconds: each step of the clock passes one. */
  val IntervalMs = 1L
}
