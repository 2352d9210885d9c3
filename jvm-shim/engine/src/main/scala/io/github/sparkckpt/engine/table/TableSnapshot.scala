// SPDX-License-Identifier: Apache-2.0
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
