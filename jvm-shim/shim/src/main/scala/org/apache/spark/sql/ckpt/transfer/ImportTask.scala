// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.transfer

import java.io.File

import io.github.sparkckpt.engine.compaction.BaseWriter
import io.github.sparkckpt.engine.segment.{BlockCodec, RowDigest, SegmentDigests, SegmentInfo, StateSegment}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.SparkEnv
import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.ckpt.families.{ColumnFamily, KeyGroupNumbering}
import org.apache.spark.sql.ckpt.files.{HadoopByteSource, StateFiles}
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.util.Utils

/**
 * One imported partition of a store.
 *
 * @param base     its base segment and the file that it fills; None without rows
 * @param families digests by column family
 */
private[transfer] final case class ImportedPartition(
    store: Int,
    partition: Int,
    base: Option[(String, SegmentInfo)],
    families: Seq[FamilyDigest])

/**
 * The task that imports one partition of a store: it reads the rows through their provider, writes them as a base
 * snapshot, and reads the file back.
 *
 * @param conf settings of the batch
 */
private[transfer] final class ImportTask(
    plan: ImportPlan,
    store: StoreDescription,
    partition: Int,
    conf: StateStoreConf,
    hadoopConf: Configuration) {
  private val source = plan.source
  private val numbering = KeyGroupNumbering.of(plan.keyGroupFactors.toArray)
  private val files = new StateFiles(new Path(plan.target, "ckpt"), hadoopConf)

  /**
   * @param index number of the store
   * @throws CheckpointFailure if the state cannot be read, contradicts itself, or was not written as read
   */
  def run(index: Int): ImportedPartition = {
    val (digests, base) = writeBase()
    try check(base, digests) catch {
      case e: Throwable =>
        base.foreach { case (name, _) => files.delete(name) }
        throw e
    }
    ImportedPartition(index, partition, base, digests)
  }

  /** Its buffers are garbage when the file is read back. */
  private def writeBase(): (Seq[FamilyDigest], Option[(String, SegmentInfo)]) = {
    val writer = new BaseWriter(
      numbering.maxParallelism, plan.bufferBytes, BlockCodec.Uncompressed, () => ImportTask.temporaryFile())
    try (read(writer), write(writer)) finally writer.close()
  }

  private def read(writer: BaseWriter): Seq[FamilyDigest] = {
    val reads = new StoreReads(source.location, source.version, conf, hadoopConf)
    reads.families(store, partition, store.stateIdOf(partition)) { (family, rows) =>
      writer.startFamily(family.name, family.multiValue)
      copy(family, rows, writer)
    }
  }

  private def copy(family: ColumnFamily, rows: Iterator[UnsafeRowPair], writer: BaseWriter): FamilyDigest =
    new FamilyDigests(store, partition, numbering, conf).of(family, rows) { (row, keyGroup, value, _) =>
      val key = row.key
      writer.add(keyGroup, key.getBaseObject, key.getBaseOffset, key.getSizeInBytes,
        value.base, value.offset, value.length)
    }

  private def write(writer: BaseWriter): Option[(String, SegmentInfo)] = {
    var info: SegmentInfo = null
    val name = files.write("base")(out => info = writer.write(source.version, out))
    if (info.entries > 0) Some(name -> info)
    else {
      files.delete(name)
      None
    }
  }

  /** Compares the rows in the file with those of the provider. */
  private def check(base: Option[(String, SegmentInfo)], expected: Seq[FamilyDigest]): Unit = {
    val found = base.fold(Map.empty[String, RowDigest]) { case (name, info) =>
      val bytes = new HadoopByteSource(files.path(name).toString, files.open(name), files.length(name))
      try SegmentDigests.of(StateSegment(isBase = true, bytes, info.offsets), source.version) finally bytes.close()
    }
    val written = found.map { case (family, digest) => FamilyDigest(family, digest.rows, digest.sum) }.toSeq
    FamilyDigests.difference(written, expected).foreach { family =>
      throw new CheckpointFailure("ImportedStateError",
        s"$store, partition $partition: the written rows of column family '$family' differ from those read. " +
          "Nothing was switched; run the command again")
    }
  }
}

private object ImportTask {
  private def temporaryFile(): File =
    new File(Utils.getLocalDir(SparkEnv.get.conf), s"spark-ckpt-import-${java.util.UUID.randomUUID()}")
}
