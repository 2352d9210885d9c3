// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.logs

import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Try

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.json.JsonMapper
import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.ckpt.common.EntryPoints
import org.apache.spark.sql.internal.SQLConf

/**
 * Entries of the offset log as a start reads them, the newest first. Spark refuses a start whose newest entry has
 * another number of partitions than the one before (`OfflineStateRepartitionUtils.isRepartitionBatch`): it takes that
 * for a repartition that was interrupted. The first batch after a rescale of a running query is such an entry as well,
 * and a start repeats that batch. So the entry before it is read with the same number.
 *
 * A repartition repeats the last entry with another number, at the same time of the batch; that one is left alone, and
 * so are queries with another state store. Not thread-safe.
 */
private[ckpt] final class OffsetsAtStart {
  import OffsetsAtStart._

  private var last = Option.empty[(Long, ObjectNode)]

  /** Content of an entry that Spark reads now. */
  def content(batchId: Long, read: Array[Byte]): Array[Byte] = {
    val settings = settingsIn(read)
    val numbered = for {
      (later, newest) <- last if later == batchId + 1 && isOurs(newest) && settings.isDefined
      number <- numberIn(newest) if !numberIn(settings.get).contains(number)
      if settings.get.path(Time) != newest.path(Time)
    } yield withNumber(read, settings.get, number)
    last = settings.map(batchId -> _)
    numbered.getOrElse(read)
  }
}

private object OffsetsAtStart {
  private val Time = "batchTimestampMs"
  private val Number = SQLConf.SHUFFLE_PARTITIONS.key
  private val Provider = SQLConf.STATE_STORE_PROVIDER_CLASS.key
  private val mapper = new JsonMapper()

  /** The second line of an entry; the first is its version. */
  private def settingsIn(entry: Array[Byte]): Option[ObjectNode] =
    linesOf(entry).lift(1).flatMap(line => Try(mapper.readTree(line)).toOption).collect { case o: ObjectNode => o }

  private def linesOf(entry: Array[Byte]): Seq[String] = new String(entry, UTF_8).split("\n", -1).toSeq

  private def confOf(settings: ObjectNode): JsonNode = settings.path("conf")

  private def isOurs(settings: ObjectNode): Boolean = confOf(settings).path(Provider).asText() == EntryPoints.Provider

  private def numberIn(settings: ObjectNode): Option[String] =
    Option(confOf(settings).path(Number).asText()).filter(_.nonEmpty)

  private def withNumber(entry: Array[Byte], settings: ObjectNode, number: String): Array[Byte] = {
    val changed = settings.deepCopy()
    changed.withObject("/conf").put(Number, number)
    linesOf(entry).updated(1, mapper.writeValueAsString(changed)).mkString("\n").getBytes(UTF_8)
  }
}
