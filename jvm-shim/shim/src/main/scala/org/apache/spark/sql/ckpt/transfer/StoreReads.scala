// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.transfer

import java.util.UUID

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.ckpt.compat.{KeyEncoders, ReadStores}
import org.apache.spark.sql.ckpt.families.ColumnFamily
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType

/**
 * Reads of a stopped query's state through its own provider, so that Spark handles all formats of files and rows.
 *
 * @param conf settings of the batch
 */
private[transfer] final class StoreReads(
    location: String,
    version: Long,
    conf: StateStoreConf,
    hadoopConf: Configuration) {

  /**
   * The results of a function of each family's rows in one partition of a store. The rows of a list are neighbours.
   * A row is valid until the next.
   *
   * @param id state id of the partition; None in checkpoint format 1
   * @throws CheckpointFailure if the state cannot be read; the function's own pass through
   */
  def families[A](store: StoreDescription, partition: Int, id: Option[String])(
      body: (ColumnFamily, Iterator[UnsafeRowPair]) => A): Seq[A] =
    try read(store, partition, id, body) catch {
      case e: CheckpointFailure => throw e
      case NonFatal(e) if ReadableCopy.isNeeded(e) =>
        ReadableCopy.of(store.storeId(location, partition), hadoopConf) { copy =>
          new StoreReads(copy, version, conf, hadoopConf).families(store, partition, id)(body)
        }
      case NonFatal(e) => throw new CheckpointFailure("SourceStateError",
        s"$store, partition $partition: the state of batch ${version - 1} cannot be read from " +
          s"${store.storeId(location, partition).storeCheckpointLocation()}: ${StateTransfer.reasons(e)}", e)
    }

  private def read[A](
      store: StoreDescription,
      partition: Int,
      id: Option[String],
      body: (ColumnFamily, Iterator[UnsafeRowPair]) => A): Seq[A] = {
    val provider = newProvider(store, partition)
    try {
      if (store.usesColumnFamilies) ofFamilies(provider.getStore(version, id), store, body)
      else {
        val rows = provider.getReadStore(version, id)
        try store.used.map(family => body(family, rows.iterator(family.name))) finally ReadStores.release(rows)
      }
    } finally provider.close()
  }

  /** Only a store for writing takes descriptions of families, without which it decodes no row. */
  private def ofFamilies[A](
      rows: StateStore,
      store: StoreDescription,
      body: (ColumnFamily, Iterator[UnsafeRowPair]) => A): Seq[A] =
    try {
      val known = store.families.map(_.name).toSet + StateStore.DEFAULT_COL_FAMILY_NAME
      val unknown = ReadStores.familyNames(rows).diff(known)
      if (unknown.nonEmpty) {
        throw new CheckpointFailure("StateSchemaError",
          s"$store has column families that no schema file describes: ${unknown.toSeq.sorted.mkString(", ")}")
      }
      StoreReads.createFamilies(rows, store)
      store.used.map { family =>
        body(family,
          if (family.multiValue) ReadStores.listRows(rows, family.name) else rows.iterator(family.name))
      }
    } finally rows.abort()

  private def newProvider(store: StoreDescription, partition: Int): StateStoreProvider =
    StoreReads.newProvider(store, store.storeId(location, partition), conf, hadoopConf)
}

private[transfer] object StoreReads {

  /** A provider of a class that the settings name. */
  def newProvider(
      store: StoreDescription,
      id: StateStoreId,
      conf: StateStoreConf,
      hadoopConf: Configuration): StateStoreProvider = {
    val default = store.default
    StateStoreProvider.createAndInit(
      StateStoreProviderId(id, UUID.randomUUID()), storedKey(default), default.valueSchema, default.encoder,
      store.usesColumnFamilies, conf, new Configuration(hadoopConf), useMultipleValuesPerKey = false,
      store.schemas.map(new InMemoryStateSchemaProvider(_)))
  }

  def createFamilies(rows: StateStore, store: StoreDescription): Unit = store.named.foreach { family =>
    rows.createColFamilyIfAbsent(
      family.name, storedKey(family), family.valueSchema, family.encoder, family.multiValue, family.isInternal)
  }

  private def storedKey(family: ColumnFamily): StructType =
    if (KeyEncoders.addsTimestamp(family.encoder)) family.encoder.keySchema else family.keySchema
}
