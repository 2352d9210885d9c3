// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.meaning

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.ckpt.common.Redaction
import org.apache.spark.sql.types.{DataType, DateType, NumericType}

/**
 * Expressions in terms of the columns of the sources, as texts that do not differ between plans of one query.
 *
 * @param sources text of each column of the sources
 * @param plans   logical plans of the query; the first definition of a column counts
 */
private[meaning] final class Lineage(sources: Map[ExprId, String], plans: Seq[LogicalPlan]) {
  import Lineage._

  private val definitions = mutable.HashMap.empty[ExprId, Seq[Expression]]
  private val origins = mutable.HashMap.empty[ExprId, String]
  private val aggregates = mutable.HashMap.empty[ExprId, AggregateExpression]
  private var lost = false

  plans.foreach(_.foreach(define))

  /** True once a text has lacked the definition of a column: it was computed before the plan. */
  def isIncomplete: Boolean = lost

  /** The expression down to the columns of the sources. */
  def text(expression: Expression): String = Redaction.redacted(textOf(expanded(expression, Set.empty)))

  /** True for a value that no row changes: a key column with it keeps its rows apart, whatever it is next time. */
  def isConstant(expression: Expression): Boolean = expanded(expression, Set.empty).foldable

  /** The aggregate before it was optimized: only then is a time of the batch no literal. */
  def analyzed(aggregate: AggregateExpression): AggregateExpression =
    aggregates.getOrElse(aggregate.resultId, aggregate)

  /** The expression as a user wrote it: columns that the optimizer has named are what they are defined as. */
  def shown(expression: Expression): String = Redaction.redacted(textOf(withoutUpcasts(written(expression))))

  private def written(expression: Expression): Expression = expression.transformUp {
    case column: Attribute if column.name.startsWith("_") =>
      val definition = definitions.get(column.exprId).filterNot(_.contains(column)).flatMap(_.headOption)
      definition.fold[Expression](column)(written)
  }

  private def expanded(expression: Expression, inside: Set[ExprId]): Expression =
    withoutUpcasts(expression.transformUp {
      case column: Attribute => ofColumn(column, inside)
    })

  private def ofColumn(column: Attribute, inside: Set[ExprId]): Expression = {
    val id = column.exprId
    lazy val definition = definitions.get(id).filterNot(_ => inside(id))
    if (sources.contains(id)) Named(sources(id), column.dataType)
    else definition match {
      case Some(Seq(only)) => expanded(only, inside + id)
      case Some(several) =>
        val texts = several.map(each => textOf(expanded(each, inside + id)))
        Named(texts.distinct.mkString(" | "), column.dataType)
      case None => Named(origins.getOrElse(id, unknown(column)), column.dataType)
    }
  }

  private def unknown(column: Attribute): String = {
    lost = true
    column.name
  }

  private def define(node: LogicalPlan): Unit = {
    node.expressions.foreach(_.foreach {
      case alias: Alias => definitions.getOrElseUpdate(alias.exprId, Seq(alias.child))
      case aggregate: AggregateExpression => aggregates.getOrElseUpdate(aggregate.resultId, aggregate)
      case _ =>
    })
    node match {
      case expand: Expand => // a sliding window: a row for each window
        expand.output.zipWithIndex.foreach { case (column, i) =>
          val ofRows = expand.projections.map(_(i)).distinct
          if (ofRows != Seq(column)) definitions.getOrElseUpdate(column.exprId, ofRows)
        }
      case evaluation: BaseEvalPython =>
        evaluation.resultAttrs.zip(evaluation.udfs).foreach { case (column, function) =>
          definitions.getOrElseUpdate(column.exprId, Seq(function))
        }
      case objects: SerializeFromObject => // texts of its serializer name classes of one session
        objects.output.foreach(column => definitions.remove(column.exprId))
        originate(objects)
      case relation: LeafNode if relation.isStreaming => // of a batch: its columns may be computed already
      case _ => originate(node)
    }
  }

  /** Columns that code or a static relation gives. */
  private def originate(node: LogicalPlan): Unit = {
    val given = AttributeSet(node.children.flatMap(_.output))
    node.output.filterNot(given.contains).foreach { column =>
      origins.getOrElseUpdate(column.exprId, s"${node.nodeName}.${column.name}")
    }
  }
}

private[meaning] object Lineage {

  /** A column of a source, or what stands for it. */
  private final case class Named(text: String, dataType: DataType)
      extends LeafExpression with Unevaluable {
    override def nullable: Boolean = true
    override def toString: String = text
  }

  /** Numbers of columns and of objects, which differ in each plan. */
  private val Ids = "#\\d+L?(-T\\w+)?|@[0-9a-f]{5,8}\\b".r

  private def textOf(expression: Expression): String = Ids.replaceAllIn(named(stable(expression)).toString, "")

  /** Without what differs in each batch or start: the time, and seeds, which Spark draws if a user gives none. */
  private def stable(expression: Expression): Expression = expression.transformUp {
    case now @ (_: CurrentBatchTimestamp | _: CurrentTimestampLike | _: CurrentDate | _: LocalTimestamp) =>
      Named(if (now.dataType == DateType) "current_date()" else "current_timestamp()", now.dataType)
    case random: ExpressionWithRandomSeed => random.withNewSeed(0)
  }

  private def withoutUpcasts(expression: Expression): Expression = expression.transformUp {
    case cast: Cast if isUpcast(cast.child.dataType, cast.dataType) => cast.child
  }

  private def isUpcast(from: DataType, to: DataType): Boolean =
    from.isInstanceOf[NumericType] && to.isInstanceOf[NumericType] && Cast.canUpCast(from, to)

  /** Arguments of lambdas, by their order: their names are counted in each JVM. */
  private def named(expression: Expression): Expression = {
    val numbers = mutable.LinkedHashMap.empty[ExprId, Int]
    expression.transformUp {
      case argument: NamedLambdaVariable =>
        Named(s"x${numbers.getOrElseUpdate(argument.exprId, numbers.size)}", argument.dataType)
    }
  }
}
