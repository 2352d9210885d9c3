// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.meaning

import org.apache.spark.sql.catalyst.expressions.{Attribute, NamedExpression}
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Final, PartialMerge}
import org.apache.spark.sql.classic.DataFrame
import org.apache.spark.sql.execution.{QueryExecution, SparkPlan}
import org.apache.spark.sql.execution.aggregate.{BaseAggregateExec, HashAggregateExec, ObjectHashAggregateExec}
import org.apache.spark.sql.execution.aggregate.SortAggregateExec
import org.apache.spark.sql.types.{StructField, StructType}

/**
 * Buffers of a batch aggregation: those that a streaming aggregation has in its state after the same input
 * (`AggUtils.planStreamingAggregation`).
 */
private[ckpt] object AggregateBuffers {

  /**
   * Columns of the keys and buffers of a batch aggregation, which is only planned.
   *
   * @return `key:<number>:<name>` of the grouping key, then `buffer:<number>:<name>` of the functions in their order;
   *         null if the query does not end with an aggregation
   */
  def columns(frame: DataFrame): Array[String] =
    frame.sparkSession.withActive {
      merged(frame.queryExecution.sparkPlan).map { case (_, schema) => schema.fieldNames }.orNull
    }

  /** Rows with these columns; null if the query does not end with an aggregation. Broadcasts are executed at once. */
  def of(frame: DataFrame): DataFrame = {
    val session = frame.sparkSession
    session.withActive {
      merged(frame.queryExecution.sparkPlan).map { case (plan, schema) =>
        session.internalCreateDataFrame(QueryExecution.prepareExecutedPlan(session, plan).execute(), schema)
      }.orNull
    }
  }

  /** The plan up to the merge of the buffers of each key. */
  private def merged(plan: SparkPlan): Option[(SparkPlan, StructType)] = plan match {
    case last: BaseAggregateExec if last.aggregateExpressions.forall(_.mode == Final) =>
      val merges = last.aggregateExpressions.map(_.copy(mode = PartialMerge))
      val keys = last.groupingExpressions.map(_.toAttribute)
      val buffers = merges.flatMap(_.aggregateFunction.inputAggBufferAttributes)
      val schema = StructType(named("key", keys) ++ named("buffer", buffers))
      withMerges(last, merges, keys ++ buffers).map(_ -> schema)
    case _ => None
  }

  private def withMerges(
      last: BaseAggregateExec, merges: Seq[AggregateExpression], result: Seq[NamedExpression]): Option[SparkPlan] =
    last match {
      case each: HashAggregateExec => Some(each.copy(aggregateExpressions = merges, resultExpressions = result))
      case each: ObjectHashAggregateExec => Some(each.copy(aggregateExpressions = merges, resultExpressions = result))
      case each: SortAggregateExec => Some(each.copy(aggregateExpressions = merges, resultExpressions = result))
      case _ => None
    }

  private def named(what: String, attributes: Seq[Attribute]): Seq[StructField] =
    attributes.zipWithIndex.map { case (attribute, number) =>
      StructField(s"$what:$number:${attribute.name}", attribute.dataType, attribute.nullable)
    }
}
