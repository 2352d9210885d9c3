// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.transfer

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.ckpt.families.ColumnFamily
import org.apache.spark.sql.execution.streaming.state._

/**
 * One exported partition of a store.
 *
 * @param stateId  its state id; None in checkpoint format 1
 * @param families digests by column family
 */
private[transfer] final case class ExportedPartition(
    store: Int,
    partition: Int,
    stateId: Option[String],
    families: Seq[FamilyDigest])

/**
 * The task that exports one partition of a store: it reads the rows through our provider, writes them through a
 * provider of Spark, and reads them back.
 *
 * @param readConf  settings of the batch
 * @param writeConf settings of the target
 */
private[transfer] final class ExportTask(
    plan: ExportPlan,
    store: StoreDescription,
    partition: Int,
    readConf: StateStoreConf,
    writeConf: StateStoreConf,
    hadoopConf: Configuration) {
  private val version = plan.source.version
  private val id = store.storeId(plan.target, partition)
  private val directory = id.storeCheckpointLocation()
  private lazy val fs = directory.getFileSystem(hadoopConf)

  /**
   * @param index number of the store
   * @throws CheckpointFailure if the state cannot be read, contradicts itself, or was not written as read
   */
  def run(index: Int): ExportedPartition = {
    fs.delete(directory, true) // of an earlier attempt
    val (read, stateId) = copy()
    moveSnapshot()
    val written = new StoreReads(plan.target, version, writeConf, hadoopConf).families(store, partition, stateId)(
      (family, rows) => new FamilyDigests(store, partition, readConf).of(family, rows)((_, _, _, _) => ()))
    FamilyDigests.difference(written, read).foreach { family =>
      throw new CheckpointFailure("ExportedStateError",
        s"$store, partition $partition: the written rows of column family '$family' differ from those read. Delete " +
          "the new location and run the command again")
    }
    ExportedPartition(index, partition, stateId, read)
  }

  /**
   * Writes the rows as version 1, the first that a provider can write.
   *
   * @return digests of the rows, and the state id
   */
  private def copy(): (Seq[FamilyDigest], Option[String]) = {
    val provider = StoreReads.newProvider(store, id, writeConf, hadoopConf)
    try {
      val target = writing(provider.getStore(0, None))
      var isCommitted = false
      try {
        if (store.usesColumnFamilies) writing(StoreReads.createFamilies(target, store))
        val reads = new StoreReads(plan.source.location, version, readConf, hadoopConf)
        val digests = reads.families(store, partition, store.stateIdOf(partition))(put(target))
        writing {
          target.commit()
          isCommitted = true
          provider.doMaintenance()
        }
        (digests, target.getStateStoreCheckpointInfo().stateStoreCkptId)
      } finally if (!isCommitted) target.abort()
    } finally provider.close()
  }

  private def put(target: StateStore)(family: ColumnFamily, rows: Iterator[UnsafeRowPair]): FamilyDigest =
    new FamilyDigests(store, partition, readConf).of(family, rows) { (pair, _, _, place) =>
      writing {
        if (place == 0) target.put(pair.key, pair.value, family.name)
        else target.merge(pair.key, pair.value, family.name)
      }
    }

  /** Gives the snapshot of version 1 the name of the exported version. The provider's other files of it go. */
  private def moveSnapshot(): Unit = writing {
    val (snapshots, others) = fs.listStatus(directory).toSeq.map(_.getPath)
      .filter(path => path.getName.startsWith("1.") || path.getName.startsWith("1_"))
      .partition(path => ExportTask.Snapshots.exists(path.getName.endsWith))
    if (snapshots.size != 1) {
      throw new IllegalStateException(s"${writeConf.providerClass} wrote ${snapshots.size} snapshots in $directory")
    }
    others.foreach(fs.delete(_, false))
    val target = new Path(directory, version.toString + snapshots.head.getName.drop(1))
    if (target != snapshots.head && !fs.rename(snapshots.head, target)) {
      throw new java.io.IOException(s"cannot rename ${snapshots.head} to $target")
    }
  }

  private def writing[A](body: => A): A =
    try body catch {
      case NonFatal(e) => throw new CheckpointFailure("TargetStateError",
        s"$store, partition $partition: ${writeConf.providerClass} cannot write the state to $directory: " +
          StateTransfer.reasons(e), e)
    }
}

private object ExportTask {
  private val Snapshots = Seq(".snapshot", ".zip")
}
