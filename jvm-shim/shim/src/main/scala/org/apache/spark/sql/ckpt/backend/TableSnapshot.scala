package org.apache.spark.sql.ckpt.backend

/**
 * The records of a table at one moment. Holds on to the pages of that moment; the table copies a page
 * before it changes a record in it. Read by one thread, closed from any.
 */
private[backend] final class TableSnapshot(
    shared: SharedPages,
    linkWords: Int,
    val count: Long,
    val rawBytes: Long) {

  /** A walk over the records. */
  def walk(): RecordWalk = new RecordWalk(shared.pages, shared.usedWords, shared.pages.length, linkWords)

  /** Points a cursor at a record. */
  def point(address: Int, cursor: EntryCursor): Unit = TableRecord.point(
    shared.pages(address >>> RecordPages.PageShift), RecordPages.offset(address), linkWords, cursor)

  /** Ends the sharing. */
  def close(): Unit = shared.close()
}
