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
