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
