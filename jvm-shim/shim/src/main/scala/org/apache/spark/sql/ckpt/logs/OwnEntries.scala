// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.logs

import scala.collection.mutable

import org.apache.hadoop.fs.Path

/**
 * What the manager of a log knows from the entries that it has put exclusively: the content of the newest ones, which
 * never changes, and that there is no later entry unless another driver has put one. Thread-safe.
 */
private[ckpt] final class OwnEntries {
  import OwnEntries._

  private val kept = mutable.LinkedHashMap.empty[Path, Array[Byte]]
  private var keptBytes = 0
  @volatile private var last: Option[Path] = None

  /** Records an entry. */
  def put(path: Path, content: Array[Byte]): Unit = synchronized {
    last = Some(path)
    if (content.length <= MaxEntry) {
      kept.put(path, content)
      keptBytes += content.length
    }
    while (keptBytes > MaxKept || kept.size > MaxEntries) forget(kept.head._1)
  }

  /**
   * Content of a new, small entry. Spark's file source reads each of its own back, and every tenth batch all since the
   * tenth one before.
   */
  def content(path: Path): Option[Array[Byte]] = synchronized(kept.get(path))

  /** True once the manager has put an entry, unless the last one was put in another way. */
  def isWriting: Boolean = last.isDefined

  /** True for the entry that follows the last one. Its conditional put fails if another driver was first. */
  def isNext(path: Path): Boolean = distance(path).contains(1)

  /** True for entries before the last one. */
  def isEarlier(path: Path): Boolean = distance(path).exists(_ < 0)

  /** Forgets an entry that is deleted. */
  def deleted(path: Path): Unit = synchronized {
    forget(path)
    if (!isEarlier(path)) last = None
  }

  /** Forgets the last entry, as one is put in another way. */
  def clear(): Unit = last = None

  private def forget(path: Path): Unit = kept.remove(path).foreach(keptBytes -= _.length)

  /** How many entries a path is after the last one. */
  private def distance(path: Path): Option[Long] = for {
    own <- last
    if own.getParent == path.getParent
    number <- numberOf(path)
    ownNumber <- numberOf(own)
  } yield number - ownNumber
}

private[ckpt] object OwnEntries {

  /** Bytes of the longest entry that stays in memory after its put. */
  val MaxEntry: Int = 64 << 10

  /** Bytes of all entries that stay in memory. */
  val MaxKept: Int = 256 << 10

  /** Number of entries that stay in memory. */
  val MaxEntries = 12

  private val Number = "([0-9]{1,18})(?:\\.compact)?".r

  /** Number of an entry; every tenth of a file source has all before it, and says so in its name. */
  private def numberOf(path: Path): Option[Long] = Some(path.getName).collect { case Number(digits) => digits.toLong }
}
