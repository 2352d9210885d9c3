// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.meaning

import java.util.HexFormat

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.{Cast, Expression}
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.ckpt.protocol.FunctionMeaning
import org.apache.spark.sql.types.StringType

/** Aggregate functions of a state, with the buffers of no input. */
private[meaning] object AggregateMeanings {

  /**
   * @param planned  the aggregate whose buffers are stored
   * @param analyzed the same before it was optimized
   */
  def of(planned: AggregateExpression, analyzed: AggregateExpression, lineage: Lineage): FunctionMeaning = {
    val function = planned.aggregateFunction
    FunctionMeaning(
      worded(analyzed, lineage.text),
      worded(analyzed, lineage.shown),
      function.aggBufferAttributes.map(_.name),
      initial(function),
      merges(function))
  }

  private def worded(aggregate: AggregateExpression, text: Expression => String): String = {
    val distinct = if (aggregate.isDistinct) "distinct " else ""
    val filter = aggregate.filter.fold("")(condition => s" filter ${text(condition)}")
    s"$distinct${text(aggregate.aggregateFunction)}$filter"
  }

  /** Buffers of no input, as text; bytes in hexadecimal. */
  private def initial(function: AggregateFunction): Option[Seq[Option[String]]] =
    try function match {
      case declarative: DeclarativeAggregate => Some(declarative.initialValues.map(asText))
      case imperative: TypedImperativeAggregate[_] => Some(Seq(Some(emptyObject(imperative))))
      case _ => None
    } catch {
      case NonFatal(_) => None // of a type without a text
    }

  private def asText(value: Expression): Option[String] =
    Option(Cast(value, StringType, Some("UTC")).eval(null)).map(_.toString)

  private def emptyObject[A](function: TypedImperativeAggregate[A]): String =
    HexFormat.of().formatHex(function.serialize(function.createAggregationBuffer()))

  private def merges(function: AggregateFunction): Seq[String] = function match {
    case _: Count => Seq("sum")
    case sum: Sum if sum.aggBufferAttributes.size == 1 => Seq("sum")
    case average: Average if average.aggBufferAttributes.size == 2 => Seq("sum", "sum")
    case _: Min => Seq("min")
    case _: Max => Seq("max")
    case _ => Nil
  }
}
