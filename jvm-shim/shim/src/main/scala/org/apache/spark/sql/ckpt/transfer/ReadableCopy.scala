// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.transfer

import java.io.{InputStream, OutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.zip.{ZipEntry, ZipInputStream, ZipOutputStream}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.SparkEnv
import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.execution.streaming.state.StateStoreId
import org.apache.spark.util.Utils

/**
 * A scratch copy of RocksDB state that this Spark can read. Early releases of Spark 4.0 write `v2` into the first line
 * of a snapshot's metadata in checkpoint format 2; the rest is as in `v1`, the only version that other releases accept
 * (`RocksDBCheckpointMetadata`).
 */
private[transfer] object ReadableCopy {
  private val Metadata = "metadata"
  private val Refused = "Expected v1, but found v2"

  /** True if Spark refuses to read a snapshot that a copy makes readable. */
  def isNeeded(failure: Throwable): Boolean =
    CheckpointFailure.causesOf(failure).exists(e => String.valueOf(e.getMessage).contains(Refused))

  /**
   * The result of a function of a checkpoint location that has a copy of one store.
   *
   * @param id the store
   */
  def of[A](id: StateStoreId, hadoopConf: Configuration)(body: String => A): A = {
    val scratch = Utils.createTempDir(Utils.getLocalDir(SparkEnv.get.conf), "spark-ckpt-import")
    try {
      val location = scratch.toURI.toString
      val target = id.copy(checkpointRootLocation = new Path(location, "state").toString).storeCheckpointLocation()
      val source = id.storeCheckpointLocation()
      copy(source.getFileSystem(hadoopConf), source, target.getFileSystem(hadoopConf), target)
      body(location)
    } finally Utils.deleteRecursively(scratch)
  }

  private def copy(from: FileSystem, source: Path, to: FileSystem, target: Path): Unit = {
    to.mkdirs(target)
    from.listStatus(source).filterNot(_.getPath.getName.startsWith(".")).foreach { status =>
      val path = new Path(target, status.getPath.getName)
      if (status.isDirectory) copy(from, status.getPath, to, path)
      else {
        val in = from.open(status.getPath)
        try {
          val out = to.create(path, false)
          try if (path.getName.endsWith(".zip")) copySnapshot(in, out) else in.transferTo(out) finally out.close()
        } finally in.close()
      }
    }
  }

  private def copySnapshot(in: InputStream, out: OutputStream): Unit = {
    val from = new ZipInputStream(in)
    val to = new ZipOutputStream(out)
    Iterator.continually(from.getNextEntry).takeWhile(_ != null).foreach { entry =>
      to.putNextEntry(new ZipEntry(entry.getName))
      if (entry.getName == Metadata) {
        to.write(new String(from.readAllBytes(), UTF_8).replaceFirst("^v2\n", "v1\n").getBytes(UTF_8))
      } else from.transferTo(to)
      to.closeEntry()
    }
    to.finish()
  }
}
