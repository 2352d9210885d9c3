// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.transfer

import io.github.sparkckpt.engine.segment.RowDigest

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.ckpt.families.{ColumnFamily, KeyGroupNumbering, KeyGroupOfRow, ValueEncoding}
import org.apache.spark.sql.execution.streaming.state._

/** Rows and digest of a column family in one partition. */
private[transfer] final case class FamilyDigest(name: String, rows: Long, sum: Long)

/** Receiver of the rows of a family in one partition. All that it gets is valid until the next row. */
private[transfer] trait RowUse {

  /**
   * @param value encoding that holds the stored bytes of the row's value
   * @param place place in the list of its key, from 0; 0 outside lists
   */
  def apply(row: UnsafeRowPair, keyGroup: Int, value: ValueEncoding, place: Int): Unit
}

/**
 * Digests of the rows in one partition of a store.
 *
 * @param numbering of the key groups
 * @param conf      settings of the batch
 */
private[transfer] final class FamilyDigests(
    store: StoreDescription,
    partition: Int,
    numbering: KeyGroupNumbering,
    conf: StateStoreConf) {

  /** Without key groups of their own, those of the partitions. */
  def this(store: StoreDescription, partition: Int, conf: StateStoreConf) =
    this(store, partition, new KeyGroupNumbering(Array(store.partitions)), conf)

  /**
   * The digest of a family's rows, each of which goes to `use`.
   *
   * @throws CheckpointFailure if a row belongs to another partition
   */
  def of(family: ColumnFamily, rows: Iterator[UnsafeRowPair])(use: RowUse): FamilyDigest = {
    val owner = KeyGroupOfRow.places(numbering, store.partitions, store.operator, store.store, family.name,
      family.keySchema, store.stateFormatVersion, partition, store.isMap)
    val values =
      ValueEncoding.of(conf.stateStoreEncodingFormat, store.schemas.map(new InMemoryStateSchemaProvider(_)))(family)
    val digest = new RowDigest
    val places = new ListPlaces(family.multiValue)
    while (rows.hasNext) {
      val row = rows.next()
      val key = row.key
      owner.find(key)
      if (owner.partition != partition) throw misplaced(family, owner.partition)
      values.encode(row.value)
      val place = places.next(key)
      digest.add(
        key.getBaseObject, key.getBaseOffset, key.getSizeInBytes, place, values.base, values.offset, values.length)
      use(row, owner.keyGroup, values, place)
    }
    FamilyDigest(family.name, digest.rows, digest.sum)
  }

  private def misplaced(family: ColumnFamily, owner: Int): CheckpointFailure = new CheckpointFailure(
    "RowPartitionError",
    s"$store, partition $partition: a row of column family '${family.name}' belongs to partition $owner by Spark's " +
      "hash. A query that was begun before Spark 3.3 may partition otherwise (useStrictDistribution): its state " +
      "cannot be transferred")
}

private[transfer] object FamilyDigests {
  /**
   * Compares the rows that were written with those that were read.
   *
   * @return name of a family that differs
   */
  def difference(written: Seq[FamilyDigest], read: Seq[FamilyDigest]): Option[String] = {
    val (found, expected) = (written.filter(_.rows > 0).toSet, read.filter(_.rows > 0).toSet)
    (found.diff(expected) ++ expected.diff(found)).headOption.map(_.name)
  }
}

/** Places of rows in the lists of their keys, from 0; always 0 outside lists. */
private final class ListPlaces(multiValue: Boolean) {
  private var key: UnsafeRow = _
  private var place = 0

  def next(of: UnsafeRow): Int = {
    if (multiValue) {
      if (key != null && key == of) place += 1
      else {
        key = of.copy()
        place = 0
      }
    }
    place
  }
}
