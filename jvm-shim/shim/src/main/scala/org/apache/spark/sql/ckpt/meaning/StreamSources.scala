// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.meaning

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.expressions.ExprId
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.ckpt.common.Redaction
import org.apache.spark.sql.ckpt.compat.SourceNames
import org.apache.spark.sql.ckpt.protocol.SourceMeaning
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation

/**
 * Sources of a query in its analysed plan, in the order of the offset log (`MicroBatchExecution.logicalPlan`).
 *
 * @param columns text of each of their columns, as `0.v`, or with the name of the source in place of its number
 */
private[meaning] final case class StreamSources(all: Seq[SourceMeaning], columns: Map[ExprId, String])

private[meaning] object StreamSources {

  /** Options that say where a source reads. Others may hold credentials. */
  private val Places = Seq("path", "subscribe", "subscribePattern", "assign", "topic", "table", "host", "port")

  def of(analyzed: LogicalPlan): StreamSources = {
    val relations = analyzed.collect {
      case relation: StreamingRelation => relation
      case relation: StreamingRelationV2 => relation
    }
    val directories = mutable.LinkedHashMap.empty[LogicalPlan, Int]
    relations.foreach(relation => directories.getOrElseUpdate(relation, directories.size))
    val columns = relations.zipWithIndex.reverse.flatMap { case (relation, number) =>
      val label = SourceNames.givenTo(relation).getOrElse(number.toString)
      relation.output.map(column => column.exprId -> s"$label.${column.name}")
    }
    val sources = relations.map(each => SourceMeaning(textOf(each), directories(each), SourceNames.givenTo(each)))
    StreamSources(sources, columns.toMap)
  }

  private def textOf(relation: LogicalPlan): String = relation match {
    case v1: StreamingRelation => described(v1.dataSource.className, v1.dataSource.options)
    case v2: StreamingRelationV2 =>
      val table = v2.identifier.map("table" -> _.toString)
      described(v2.sourceName, v2.extraOptions.asCaseSensitiveMap().asScala.toMap ++ table)
  }

  private def described(name: String, options: Map[String, String]): String = {
    val given = CaseInsensitiveMap(options)
    val places = Places.flatMap(key => given.get(key).map(value => s"$key=$value"))
    Redaction.redacted((name +: places).mkString(" "))
  }
}
