// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.restore

import io.github.sparkckpt.engine.segment.StateSegment

/** Segments of a restore: bases first, then deltas, oldest first. They are opened whenever some of them are wanted. */
trait StoredSegments {

  /** For each segment the key groups of its blocks, in their order. */
  def keyGroups: IndexedSeq[Array[Int]]

  /**
   * Opens segments, and closes them after the body.
   *
   * @param wanted positions among all segments, ascending
   * @param body   takes the segments by these positions
   */
  def reading(wanted: Seq[Int])(body: (Int => StateSegment) => Unit): Unit

  /** Bytes of memory of segments that are in no file, until [[close]]. */
  def memoryBytes: Long = 0

  /**
   * Opens a segment for reads of single rows, unless it is open. It stays open until [[close]].
   *
   * @param body takes the segment
   */
  def lookingUp(segment: Int)(body: StateSegment => Unit): Unit

  /** Closes what [[lookingUp]] has opened. No segment is opened afterwards. */
  def close(): Unit

  /** The error for a reader whose rows cannot be loaded. */
  def unreadable(cause: Throwable): Throwable

  /** Everything is loaded: so many rows. */
  def loaded(rows: Long): Unit
}
