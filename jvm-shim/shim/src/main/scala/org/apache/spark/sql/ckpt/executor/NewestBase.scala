/*
 * Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
 * the License. You may obtain a copy of the License at
 *
 *    http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on
 * an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
 * specific language governing permissions and limitations under the License.
 */
package org.apache.spark.sql.ckpt.executor

/**
 * Version at which a restore of one store begins: the newest one that counts, minus the deltas that a restore
 * of it reads. While every batch has changes that is the version of the newest base. A partition that has nothing to
 * write has no deltas either, and does not seem to lag.
 *
 * Threads: the provider's turn orders the changes; the version may be asked for without it.
 */
private[ckpt] final class NewestBase {
  // Versions that the deltas since the base lead to; of those that were loaded the version that was loaded.
  private var deltas = Vector.empty[Long]
  private var newest = -1L

  /** Version of the base that went with the newest ack. An attempt that takes the place of this one sends its own. */
  private var sent: Option[Long] = None
  @volatile private var current = -1L

  /** The version, -1 before the first load. */
  def version: Long = current

  /** A version has been loaded with so many deltas. */
  def loaded(version: Long, count: Int): Unit = {
    deltas = Vector.fill(count)(version)
    sent = None
    newest = version
    current = version - count
  }

  /**
   * A version has been committed, and counts.
   *
   * @param hasDelta true if the batch has changed anything
   * @param base     version of the base that went with the ack
   */
  def committed(version: Long, hasDelta: Boolean, base: Option[Long]): Unit = {
    if (version > newest) sent.foreach(dropUntil)
    deltas = deltas.takeWhile(_ < version)
    if (hasDelta) deltas :+= version
    sent = base
    newest = version
    current = version - deltas.count(_ > base.getOrElse(-1L))
  }

  private def dropUntil(base: Long): Unit = deltas = deltas.dropWhile(_ <= base)
}
