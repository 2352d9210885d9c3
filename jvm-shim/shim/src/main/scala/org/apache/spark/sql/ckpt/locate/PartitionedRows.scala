// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.locate

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import io.github.sparkckpt.engine.segment.RowFilter

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.ckpt.families.PartitionOfRow
import org.apache.spark.sql.ckpt.files.StoreSegments
import org.apache.spark.sql.ckpt.protocol.{Message, PartitionFilter}

private[ckpt] object SubtaskFilters {

  /**
   * Filters of a subtask's segments, from the master state `spark-batch` (docs/protocol.md, section 4).
   *
   * @param store the object that describes the store
   */
  def of(store: JsonNode, partition: Int): Seq[Seq[PartitionFilter]] = {
    val text = StoreSegments.unpacked(store, "filters")
    if (text.isEmpty) Nil
    else Message.mapper.readTree(text).path(partition.toString).elements().asScala.toSeq.map(filtersOf)
  }

  /** From `[[parallelism, [partition, ...]], ...]`. */
  private def filtersOf(json: JsonNode): Seq[PartitionFilter] = json.elements().asScala.toSeq.map { filter =>
    PartitionFilter(filter.path(0).asInt(), filter.path(1).elements().asScala.map(_.asInt()).toSet)
  }
}

/** The partition of a key. Not thread-safe. */
private[ckpt] trait PartitionOfKey {
  def partition(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Int
}

private[ckpt] object PartitionOfKey {

  /**
   * @param fields    number of fields of a stored key
   * @param partition partition of a key
   */
  def of(fields: Int, partition: PartitionOfRow): PartitionOfKey = {
    val row = new UnsafeRow(fields)
    (keyBase: AnyRef, keyOffset: Long, keyLength: Int) => {
      row.pointTo(keyBase, keyOffset, keyLength)
      partition.partition(row)
    }
  }
}

/**
 * Rows that pass all filters. Not thread-safe.
 *
 * @param partitionOf partition of a row of a column family, for a number of partitions
 */
private[ckpt] final class PartitionedRows(
    filters: Seq[PartitionFilter],
    partitionOf: (String, Int) => PartitionOfKey)
    extends RowFilter {
  private val accepted: Array[Set[Int]] = filters.map(_.partitions).toArray
  private var family: String = _
  private var functions: Array[PartitionOfKey] = _

  override def accepts(name: String, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean = {
    if (name != family) {
      functions = filters.map(filter => partitionOf(name, filter.parallelism)).toArray
      family = name
    }
    var i = 0
    while (i < accepted.length && accepted(i).contains(functions(i).partition(keyBase, keyOffset, keyLength))) i += 1
    i == accepted.length
  }
}
