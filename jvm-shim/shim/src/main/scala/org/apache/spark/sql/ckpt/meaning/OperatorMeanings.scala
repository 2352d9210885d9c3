// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.meaning

import org.apache.spark.sql.catalyst.expressions.{Expression, IsNotNull, NamedExpression, PredicateHelper}
import org.apache.spark.sql.ckpt.compat.StreamingPlans
import org.apache.spark.sql.ckpt.protocol.{FunctionMeaning, KeyMeaning, OperatorMeaning}
import org.apache.spark.sql.execution.{FilterExec, SparkPlan}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.python.streaming.FlatMapGroupsInPandasWithStateExec
import org.apache.spark.sql.execution.streaming.operators.stateful._
import org.apache.spark.sql.execution.streaming.operators.stateful.flatmapgroupswithstate.FlatMapGroupsWithStateExec
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.TransformWithStateExec

/** Stateful operators of a plan whose operators are numbered. */
private[meaning] final class OperatorMeanings(lineage: Lineage) extends PredicateHelper {

  import OperatorMeanings._

  def of(plan: SparkPlan): Seq[OperatorMeaning] =
    StreamingPlans.collect(plan) { case writer: StateStoreWriter => of(writer) }.sortBy(_.operatorId)

  private def of(writer: StateStoreWriter): OperatorMeaning = {
    val plain = OperatorMeaning(
      writer.asInstanceOf[StatefulOperator].getStateInfo.operatorId, writer.shortName, detail = None, keys = Nil)
    writer match {
      case save: StateStoreSaveExec =>
        plain.copy(keys = keys(save.keyExpressions), functions = functions(save.child))
      case sessions: SessionWindowStateStoreSaveExec =>
        plain.copy(detail = Some(lineage.text(sessions.sessionExpression)),
          keys = keys(sessions.keyWithoutSessionExpressions), functions = functions(sessions.child))
      case dedup: StreamingDeduplicateExec => plain.copy(keys = keys(dedup.keyExpressions))
      case dedup: StreamingDeduplicateWithinWatermarkExec => plain.copy(keys = keys(dedup.keyExpressions))
      case join: StreamingSymmetricHashJoinExec =>
        plain.copy(detail = Some(s"${join.joinType.sql} join"), keys = keys(join.leftKeys),
          rightKeys = keys(join.rightKeys), sides = Seq(join.left, join.right).map(conditions))
      case groups: FlatMapGroupsWithStateExec => plain.copy(keys = keys(groups.groupingAttributes))
      case groups: FlatMapGroupsInPandasWithStateExec => plain.copy(keys = keys(groups.groupingAttributes))
      case processor: TransformWithStateExec => plain.copy(keys = keys(processor.groupingAttributes))
      case other => StreamingPlans.groupingInPython(other).fold(plain)(columns => plain.copy(keys = keys(columns)))
    }
  }

  private def keys(expressions: Seq[Expression]): Seq[KeyMeaning] = expressions.map { expression =>
    val name = expression match {
      case named: NamedExpression => named.name
      case other => lineage.shown(other)
    }
    val text = if (lineage.isConstant(expression)) Constant else lineage.text(expression)
    KeyMeaning(name, text, lineage.shown(expression))
  }

  /** Without checks for null and constants, which the optimizer adds or leaves out by the input of a batch. */
  private def conditions(side: SparkPlan): String =
    side.collect { case filter: FilterExec => splitConjunctivePredicates(filter.condition) }.flatten
      .filterNot(each => each.isInstanceOf[IsNotNull] || each.foldable).map(lineage.text).mkString(" AND ")

  /** The functions whose buffers are stored, in their order: those of the aggregate below the operator. */
  private def functions(below: SparkPlan): Seq[FunctionMeaning] = {
    val levels = below.collect { case aggregate: BaseAggregateExec => aggregate.aggregateExpressions }
    levels.headOption.getOrElse(Nil).map(each => AggregateMeanings.of(each, lineage.analyzed(each), lineage))
  }
}

private object OperatorMeanings {

  /** Text of every key column with one value in all rows. */
  private val Constant = "a constant"
}
