// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.compaction

import java.io.{Closeable, OutputStream}

import io.github.sparkckpt.engine.segment.{SegmentBytes, SegmentInfo}

/**
 * A consistent view of all tables at one version, made by [[KeyedStateBackend.snapshotBase]]. Any one thread writes it
 * while batches continue, and then closes it.
 */
trait BaseSnapshot extends Closeable {

  /** Does what takes long before the other methods can answer. */
  def prepare(): Unit = ()

  def version: Long

  /** Id of the state of this version. */
  def stateId: String

  /** Number of rows. */
  def rows: Long

  /** Bytes of its keys and values: about the size of the base segment. */
  def rawBytes: Long

  /**
   * Writes a base segment, block by block. The stream is not closed.
   *
   * @throws IllegalStateException if the snapshot is closed
   * @throws StateTooLargeException if one key group has more than 1 GiB
   */
  def write(out: OutputStream): SegmentInfo

  /** The base segment in memory; [[StateTooLargeException]] above 1 GiB. */
  def toBytes(): SegmentBytes

  /** Frees the memory of the view, which cannot be written afterwards. Idempotent, from any thread. */
  override def close(): Unit
}
