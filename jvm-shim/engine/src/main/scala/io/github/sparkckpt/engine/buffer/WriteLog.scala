// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.buffer

import java.util.Arrays

import io.github.sparkckpt.engine.bytes.{Bytes, EntryCursor}
import io.github.sparkckpt.engine.pages.RecordPages

/**
 * All writes of one batch to one column family, in order, for a delta that records each of them.
 *
 * A section of a segment has either puts and removals or appended rows. So the writes of a key are divided into rounds:
 * consecutive writes of one kind share a round, and each round has its own section. Even rounds are puts and removals,
 * odd ones appends.
 */
private[engine] final class WriteLog {
  private var values: ValueRecords = _
  private var writes = 0
  private var entries: Array[Int] = _
  private var addresses: Array[Int] = _
  private var roundOf: Array[Int] = _

  // By entry of the write buffer: the round of its last write, plus 1.
  private var lastRounds: Array[Int] = _
  private var roundCount = 0

  reset()

  /** Number of writes, numbered from 0. */
  def count: Int = writes

  /** Number of rounds, some of them possibly empty. */
  def rounds: Int = roundCount

  /** The entry of the write buffer that belongs to a write. */
  def entry(write: Int): Int = entries(write)

  /** The round of a write. */
  def round(write: Int): Int = roundOf(write)

  /** Bytes of memory. */
  def memoryBytes: Long = values.memoryBytes + entries.length * 12L + lastRounds.length * 4L

  /** Records a put. */
  def put(entry: Int, base: AnyRef, offset: Long, length: Int): Unit =
    add(entry, values.write(Bytes.words(length), base, offset, length), appends = false)

  /** Records an append. */
  def append(entry: Int, rowsBase: AnyRef, rowsOffset: Long, rowsLength: Int): Unit =
    add(entry, values.write(Bytes.words(rowsLength), rowsBase, rowsOffset, rowsLength), appends = true)

  /** Records a removal. */
  def remove(entry: Int): Unit = add(entry, 0, appends = false)

  /** Points a cursor at the bytes of a write; length -1 for a removal. */
  def pointValue(write: Int, cursor: EntryCursor): Unit =
    if (addresses(write) == 0) cursor.valueLength = -1 else values.point(addresses(write), cursor)

  /** Clears the log. */
  def reset(): Unit = {
    values = new ValueRecords(new RecordPages)
    writes = 0
    entries = new Array[Int](8)
    addresses = new Array[Int](8)
    roundOf = new Array[Int](8)
    lastRounds = new Array[Int](8)
    roundCount = 0
  }

  private def add(entry: Int, address: Int, appends: Boolean): Unit = {
    if (writes == entries.length) {
      entries = Arrays.copyOf(entries, writes * 2)
      addresses = Arrays.copyOf(addresses, writes * 2)
      roundOf = Arrays.copyOf(roundOf, writes * 2)
    }
    if (entry >= lastRounds.length) lastRounds = Arrays.copyOf(lastRounds, math.max(entry + 1, lastRounds.length * 2))
    val last = lastRounds(entry) - 1
    val odd = if (appends) 1 else 0
    val round = if (last < 0) odd else if ((last & 1) == odd) last else last + 1
    lastRounds(entry) = round + 1
    roundCount = math.max(roundCount, round + 1)
    entries(writes) = entry
    addresses(writes) = address
    roundOf(writes) = round
    writes += 1
  }
}
