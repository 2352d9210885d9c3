// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.meaning

import java.util.{Map => JMap, UUID}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
import org.apache.spark.sql.catalyst.plans.logical.{EventTimeWatermark, LogicalPlan}
import org.apache.spark.sql.ckpt.protocol.QueryMeaning
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeqMetadata
import org.apache.spark.sql.execution.streaming.runtime.{IncrementalExecution, StreamExecution, WatermarkPropagator}
import org.apache.spark.sql.streaming.{DataStreamWriter, OutputMode}

/**
 * Plans of streaming queries, and what they mean. A query is planned without a start: no source is asked, no data is
 * read and no task runs. Leaves stay `StreamingRelation`s, which Spark plans for `explain`.
 */
private[ckpt] object QueryPlans {

  /** Meaning of a batch that runs. If a source of it has no input, Spark evaluates its part, so it is planned again. */
  def meaningOf(query: StreamExecution, batch: IncrementalExecution): QueryMeaning =
    meaningOf(batch, query.analyzedPlan).getOrElse {
      val again = new IncrementalExecution(batch.sparkSession, query.analyzedPlan, batch.outputMode,
        batch.checkpointLocation, UUID.randomUUID(), UUID.randomUUID(), batch.currentBatchId, None,
        batch.offsetSeqMetadata, WatermarkPropagator.noop(), isFirstBatch = false)
      meaningOf(again, query.analyzedPlan).getOrElse(throw withoutDefinition)
    }

  /**
   * Plans batch 0 of a query. Spark writes its state schemas and operator metadata below `state`.
   *
   * @param query    the query's rows
   * @param mode     its output mode
   * @param location an empty directory, but for `offsets/0`
   * @param settings settings that a start takes from the offset log
   * @param metadata JSON of an entry of the offset log with them (`OffsetSeqMetadata`)
   * @return the meaning of its state, as JSON
   */
  def plan(
      query: DataFrame,
      mode: String,
      location: String,
      settings: JMap[String, String],
      metadata: String): String = {
    val session = query.sparkSession.cloneSession()
    settings.asScala.foreach { case (key, value) => session.conf.set(key, value) }
    session.withActive {
      val analyzed = query.queryExecution.analyzed
      if (session.sessionState.conf.isUnsupportedOperationCheckEnabled) {
        UnsupportedOperationChecker.checkForStreaming(analyzed, outputMode(mode))
      }
      val execution = new IncrementalExecution(session, analyzed, outputMode(mode), s"$location/state",
        UUID.randomUUID(), UUID.randomUUID(), 0, None, OffsetSeqMetadata(metadata), WatermarkPropagator.noop(),
        isFirstBatch = true)
      meaningOf(execution, analyzed).getOrElse(throw withoutDefinition).toJson
    }
  }

  /** JSON of an entry of the offset log that a new query would write now, with the settings of its session. */
  def newEntry(session: SparkSession, watermarkMs: Long, nowMs: Long): String =
    OffsetSeqMetadata(watermarkMs, nowMs, session.conf).json

  /** The output mode of a query's writer, which keeps it to itself. */
  def outputModeOf(writer: DataStreamWriter[_]): String = {
    val field = writer.getClass.getDeclaredField("outputMode")
    field.setAccessible(true)
    field.get(writer).toString
  }

  private def meaningOf(execution: IncrementalExecution, analyzed: LogicalPlan): Option[QueryMeaning] = {
    val sources = StreamSources.of(analyzed)
    val lineage = new Lineage(sources.columns, Seq(execution.analyzed, execution.optimizedPlan))
    val watermarks = analyzed.collect { case node: EventTimeWatermark =>
      s"${lineage.text(node.eventTime)} ${node.delay}"
    }
    val meaning = QueryMeaning(sources.all, new OperatorMeanings(lineage).of(execution.executedPlan), watermarks)
    if (lineage.isIncomplete) None else Some(meaning)
  }

  private def withoutDefinition = new IllegalStateException("columns of the plan have no definition")

  private def outputMode(name: String): OutputMode = name match {
    case "append" => OutputMode.Append()
    case "update" => OutputMode.Update()
    case "complete" => OutputMode.Complete()
  }
}
