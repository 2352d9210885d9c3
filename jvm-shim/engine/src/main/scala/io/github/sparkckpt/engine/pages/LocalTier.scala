// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

import java.nio.file.Path

/**
 * Local disk below the tables of a backend: beyond a limit of memory, pages are evicted to files.
 *
 * @param limit   bytes of memory for all tables of the budget
 * @param newFile path of a file that does not exist, in an existing directory
 * @param shedAll makes the tables of other owners evict too, if the limit is exceeded and this one cannot; never waits
 * @param maxPageWords size of pages, smaller in tests
 */
final class LocalTier(
    val limit: Long,
    val budget: MemoryBudget,
    val newFile: () => Path,
    val shedAll: () => Unit = () => (),
    val maxPageWords: Int = RecordPages.MaxPageWords) {

  private[engine] val traffic = new LocalTraffic

  /** Reads of local files since the start. */
  def reads: Long = traffic.reads.sum()

  /** Bytes read from local files since the start. */
  def readBytes: Long = traffic.readBytes.sum()

  /** Bytes written to local files since the start. */
  def writtenBytes: Long = traffic.writtenBytes.sum()
}
