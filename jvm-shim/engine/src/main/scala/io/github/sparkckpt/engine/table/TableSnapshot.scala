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
package io.github.sparkckpt.engine.table

import io.github.sparkckpt.engine.bytes.EntryCursor
import io.github.sparkckpt.engine.pages.{RecordPages, RecordWalk, SharedPages, TableRecord}

import org.apache.spark.unsafe.Platform

/**
 * Records of a table at one moment. It holds the pages of that moment; before a record there changes, the table copies
 * the page, or moves the record. Read by one thread, closed from any.
 */
private[engine] final class TableSnapshot(
    shared: SharedPages,
    linkWords: Int,
    val count: Long,
    val rawBytes: Long) {

  /** A walk over the records. */
  def walk(): RecordWalk = shared.walk(linkWords)

  /** True if records are on evicted pages: then [[point]] in any order but that of the walk is slow. */
  def hasEvicted: Boolean = shared.hasLocal

  /** Points a cursor at a record. */
  def point(address: Int, cursor: EntryCursor): Unit = {
    val page = shared.page(address)
    if (page != null) TableRecord.point(page, RecordPages.offset(address), linkWords, cursor)
    else TableRecord.point(shared.localRecord(address, linkWords), Platform.BYTE_ARRAY_OFFSET, linkWords, cursor)
  }

  /** Ends the sharing. */
  def close(): Unit = shared.close()
}
