// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.logs

import java.io.IOException

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.{FileSystem, Path}

/**
 * Old entries of a log, deleted many at once. Spark deletes one of each log in every batch, which takes three requests
 * on S3.
 *
 * Entries that wait for their deletion are gone for the run itself. If its driver ends, they stay: the next run lists
 * the log and deletes all old entries. Thread-safe.
 *
 * @param fs  file system of the log
 * @param log directory of the log
 */
private[ckpt] final class LogPurge(fs: FileSystem, log: Path) {
  import LogPurge._

  private val waiting = mutable.LinkedHashSet.empty[Path]

  private lazy val bulk = fs.createBulkDelete(log)

  private lazy val atOnce = math.min(Most, bulk.pageSize)

  /** True for an entry that waits for its deletion. */
  def isWaiting(entry: Path): Boolean = synchronized(waiting.contains(entry))

  /**
   * Deletes an entry, now or later.
   *
   * @param check throws if the run may no longer delete entries
   * @throws IOException if entries could not be deleted; the next call tries again
   */
  def delete(entry: Path)(check: => Unit): Unit = synchronized {
    waiting += entry
    if (waiting.size >= atOnce) {
      check
      deleteAll()
    }
  }

  private def deleteAll(): Unit =
    for (page <- waiting.toSeq.grouped(atOnce)) {
      val failed = bulk.bulkDelete(page.asJava).asScala
      waiting --= page.toSet -- failed.map(_.getKey)
      failed.headOption.foreach { first =>
        val names = failed.map(_.getKey.getName).mkString(", ")
        throw new IOException(s"cannot delete the old entries $names of $log: ${first.getValue}")
      }
    }
}

private[ckpt] object LogPurge {

  /** Entries of a log that are deleted at once, where the file system deletes many with one request. */
  val Most = 10
}
