// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.logs

import org.apache.hadoop.fs.{FileStatus, Path}

/**
 * Files below a directory, as one recursive listing of an object store gives them. Such a listing has no empty
 * directories, so nothing is known about those.
 *
 * @param isLog true if its numbered files are entries of a log, next to which there is nothing else
 */
private[ckpt] final class LogListing(root: Path, val files: Seq[FileStatus], isLog: Boolean) {
  import LogListing._

  private val statuses: Map[Path, FileStatus] = {
    val directories = files.flatMap(file => above(file.getPath)).distinct
    directories.map(path => path -> new FileStatus(0, true, 0, 0, 0, path)).toMap ++
      files.map(file => file.getPath -> file)
  }

  private val byDirectory: Map[Path, Seq[FileStatus]] =
    statuses.values.filter(_.getPath != root).toSeq.sortBy(_.getPath).groupBy(_.getPath.getParent)

  /** Status of a file or directory; Some(None) where there is none, None where that is not known. */
  def status(path: Path): Option[Option[FileStatus]] = statuses.get(path) match {
    case None if isLog && isEntry(path) && statuses.contains(path.getParent) => Some(None)
    case known => known.map(Some(_))
  }

  /** Files and directories in a directory, sorted by path. */
  def children(directory: Path): Option[Seq[FileStatus]] = byDirectory.get(directory)

  private def above(path: Path): Iterator[Path] =
    if (path == root) Iterator.empty else Iterator.iterate(path.getParent)(_.getParent).takeWhile(_ != root.getParent)

  /**
   * The files that Spark reads when a query starts: of a log the latest compacted entry and all after it. Of a log
   * without one, the latest two entries, but all entries of a source (`CompactibleFileStreamLog.allFiles`). Of the
   * state its schemas and the metadata of operators. Large files are left to Spark, and so is what exceeds the sum.
   */
  def readAtStart: Seq[FileStatus] = {
    val candidates = files.filter(file => isLog || file.getPath == root || isMetadata(file.getPath))
    val (entries, others) = candidates.partition(file => isEntry(file.getPath))
    val latest = entries.groupBy(_.getPath.getParent).values.flatMap { entries =>
      val sorted = entries.sortBy(entry => number(entry.getPath))
      val compacted = sorted.lastIndexWhere(_.getPath.getName.endsWith(Compacted))
      if (compacted >= 0) sorted.drop(compacted)
      else if (root.getName == Sources) sorted
      else sorted.takeRight(2)
    }
    val most = if (OfBatches(root.getName)) MaxBatchBytes else MaxBytes
    val small = (latest ++ others).filter(_.getLen <= most).toSeq
    val sums = small.scanLeft(0L)(_ + _.getLen).tail
    small.zip(sums).takeWhile(_._2 <= MaxSum).map(_._1).take(MaxRead)
  }

  /** Paths that Spark asks for when a query starts, although the listing does not have them. */
  def askedAtStart: Seq[Path] = {
    val operators = if (isLog) Nil else children(root).getOrElse(Nil).map(_.getPath)
    val metadata = operators.map(new Path(_, Metadata)).filter(statuses.contains)
    metadata.map(new Path(_, SecondVersion)).filterNot(statuses.contains)
  }

  private def isMetadata(file: Path): Boolean = above(file).exists(directory => MetadataDirectories(directory.getName))
}

private object LogListing {
  private val Sources = "sources"
  private val Compacted = ".compact" // CompactibleFileStreamLog.COMPACT_FILE_SUFFIX

  private val Metadata = "_metadata"

  /** Directories of an operator (`OperatorStateMetadataUtils`, `StateStore`), and of transformWithState's schemas. */
  private val MetadataDirectories = Set(Metadata, "_stateSchema")

  /** Of an operator's metadata (`OperatorStateMetadataV2.metadataDirPath`). */
  private val SecondVersion = "v2"

  /** Logs with an entry per batch, whose size does not grow with the number of batches. */
  private val OfBatches = Set("offsets", "commits")

  // Of a file that is held in memory, and of all together.
  private val MaxBatchBytes = 4L << 20
  private val MaxBytes = 64L << 10
  private val MaxSum = 8L << 20
  private val MaxRead = 256

  private def number(file: Path): Long = file.getName.stripSuffix(Compacted).toLong

  private def isEntry(file: Path): Boolean = file.getName.stripSuffix(Compacted).toLongOption.isDefined
}
