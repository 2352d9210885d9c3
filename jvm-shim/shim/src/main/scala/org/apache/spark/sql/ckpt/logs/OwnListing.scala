// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.logs

import scala.collection.mutable

import org.apache.hadoop.fs.{FileStatus, Path}

/**
 * Files of a log, kept up to date by the only driver that writes it. Spark's file source lists its log in every batch,
 * which costs as much as a write on S3. An entry of another driver is missing here; the next conditional put finds it.
 * Thread-safe.
 *
 * @param log   directory of the log
 * @param clock current time, milliseconds since 1970 UTC
 */
private[ckpt] final class OwnListing(log: Path, clock: () => Long) {
  import OwnListing._

  private var known: Option[mutable.TreeMap[Path, FileStatus]] = None

  /**
   * Files of the log.
   *
   * @param list lists the storage, for the first time
   */
  def files(list: => Seq[FileStatus]): Seq[FileStatus] = synchronized {
    known.map(_.values.toSeq).getOrElse {
      val listed = list
      if (listed.size <= MaxFiles) known = Some(mutable.TreeMap.from(listed.map(file => file.getPath -> file)))
      listed
    }
  }

  /** Records a file that this driver has put. */
  def put(path: Path, bytes: Long): Unit = synchronized {
    if (path.getParent == log) known.foreach(_.update(path, new FileStatus(bytes, false, 1, 0, clock(), path)))
    if (known.exists(_.size > MaxFiles)) known = None
  }

  /** Records a deletion. */
  def deleted(path: Path): Unit = synchronized(known.foreach(_.remove(path)))

  /** Forgets the files, as one appears in another way. */
  def clear(): Unit = synchronized { known = None }
}

private[ckpt] object OwnListing {

  /** Number of files of the longest listing that stays in memory. */
  val MaxFiles = 10000
}
