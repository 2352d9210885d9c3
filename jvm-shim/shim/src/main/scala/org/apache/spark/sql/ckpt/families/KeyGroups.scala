// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.families

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.types.StructType

/**
 * Numbering of key groups (docs/protocol.md, section 2): Spark's partitioning hash modulo K, its digits reversed along
 * the chain P0, P0*f1, ..., K, so that the partitions of each of these counts own one contiguous range.
 *
 * @param factors `[P0, f1, f2, ...]`; their product is K
 */
private[ckpt] final class KeyGroupNumbering(factors: Array[Int]) {
  val maxParallelism: Int = factors.product

  private val numberOf: Array[Int] = Array.tabulate(maxParallelism) { hash =>
    var rest = hash
    var weight = maxParallelism
    var number = 0
    factors.foreach { factor =>
      weight /= factor
      number += (rest % factor) * weight
      rest /= factor
    }
    number
  }

  /** @param hashModulo Spark's partition id for `maxParallelism` partitions */
  def number(hashModulo: Int): Int = numberOf(hashModulo)
}

private[ckpt] object KeyGroupNumbering {
  private final val MaxShared = 16
  private val shared = mutable.LinkedHashMap.empty[Seq[Int], KeyGroupNumbering]

  /** The numbering that all stores of a query share: its size grows with the partitions, as their number does. */
  def of(factors: Array[Int]): KeyGroupNumbering = synchronized {
    shared.getOrElseUpdate(factors.toSeq, {
      if (shared.size >= MaxShared) shared -= shared.head._1
      new KeyGroupNumbering(factors)
    })
  }
}

/** The key group of a state key. Not thread-safe. */
private[ckpt] trait KeyGroupOfRow {
  def keyGroup(key: UnsafeRow): Int
}

/** The partition to which Spark's shuffle sends a row. Not thread-safe. */
private[ckpt] trait PartitionOfRow {
  def partition(key: UnsafeRow): Int
}

/** Partition and key group of a row, by one hash. Not thread-safe. */
private[ckpt] abstract class PlaceOfRow {

  /** Those of the row of the last [[find]]. */
  var partition: Int = 0
  var keyGroup: Int = 0

  def find(key: UnsafeRow): Unit
}

private[ckpt] object KeyGroupOfRow {

  /**
   * @param operator           Spark's short name of the operator
   * @param stateFormatVersion state format version of a join, else None
   * @param subtask            partition of the subtask; its own key group serves operators whose partition key Spark
   *                           does not expose
   * @param isMap              true if the family of this name is the map of a `transformWithState`
   */
  def of(
      numbering: KeyGroupNumbering,
      operator: String,
      store: String,
      columnFamily: String,
      keySchema: StructType,
      stateFormatVersion: Option[Int],
      subtask: Int,
      isMap: String => Boolean): KeyGroupOfRow =
    partition(numbering.maxParallelism, operator, store, columnFamily, keySchema, stateFormatVersion, isMap)
      .map[KeyGroupOfRow](hash => (key: UnsafeRow) => numbering.number(hash.partition(key)))
      .getOrElse {
        val own = ownKeyGroup(numbering, subtask)
        (_: UnsafeRow) => own
      }

  /**
   * Partition and key group of rows; the subtask's own where Spark does not expose the partition key.
   *
   * @param parallelism number of partitions; for the other parameters see `of`
   */
  def places(
      numbering: KeyGroupNumbering,
      parallelism: Int,
      operator: String,
      store: String,
      columnFamily: String,
      keySchema: StructType,
      stateFormatVersion: Option[Int],
      subtask: Int,
      isMap: String => Boolean): PlaceOfRow = {
    // The hash modulo a common multiple gives that modulo each number.
    val multiple = leastCommonMultiple(numbering.maxParallelism, parallelism)
    partition(multiple, operator, store, columnFamily, keySchema, stateFormatVersion, isMap)
      .map[PlaceOfRow](new HashedPlace(_, numbering, parallelism))
      .getOrElse(new OwnPlace(subtask, ownKeyGroup(numbering, subtask)))
  }

  private def ownKeyGroup(numbering: KeyGroupNumbering, subtask: Int): Int =
    numbering.number(subtask % numbering.maxParallelism)

  private def leastCommonMultiple(a: Int, b: Int): Int =
    Math.multiplyExact(a / BigInt(a).gcd(BigInt(b)).toInt, b)

  /**
   * The partition to which Spark's shuffle sends a row; None if Spark does not expose its partition key.
   *
   * @param parallelism number of partitions; for the other parameters see `of`
   */
  def partition(
      parallelism: Int,
      operator: String,
      store: String,
      columnFamily: String,
      keySchema: StructType,
      stateFormatVersion: Option[Int],
      isMap: String => Boolean): Option[PartitionOfRow] =
    PartitionKey.of(operator, store, columnFamily, keySchema, stateFormatVersion, isMap)
      .filter(_.schema.nonEmpty)
      .map(new HashedPartition(parallelism, _))

  private final class HashedPartition(parallelism: Int, partitionKey: PartitionKey) extends PartitionOfRow {
    // Spark's own expression for the partition of a row, so that collations and all types hash as in the shuffle.
    private val hash: UnsafeProjection = {
      val columns = partitionKey.schema.fields.toSeq.zipWithIndex.map { case (field, i) =>
        BoundReference(i, field.dataType, field.nullable)
      }
      UnsafeProjection.create(Seq(HashPartitioning(columns, parallelism).partitionIdExpression))
    }

    override def partition(key: UnsafeRow): Int = hash(partitionKey(key)).getInt(0)
  }

  private final class HashedPlace(hash: PartitionOfRow, numbering: KeyGroupNumbering, parallelism: Int)
      extends PlaceOfRow {
    override def find(key: UnsafeRow): Unit = {
      val modulo = hash.partition(key)
      partition = modulo % parallelism
      keyGroup = numbering.number(modulo % numbering.maxParallelism)
    }
  }

  private final class OwnPlace(own: Int, ownKeyGroup: Int) extends PlaceOfRow {
    partition = own
    keyGroup = ownKeyGroup

    override def find(key: UnsafeRow): Unit = ()
  }
}
