// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.compaction

import java.io.OutputStream

import io.github.sparkckpt.engine.segment.{SegmentBytes, SegmentInfo}

/**
 * A snapshot that is taken at its first use, of the version that is folded then. While it waits to be written, the
 * tables copy nothing for it.
 *
 * @param take  takes it, from any thread; not if this was closed before
 * @param ready does before what takes long
 */
final class DeferredSnapshot(
    private var take: () => BaseSnapshot, @volatile private var ready: () => Unit = () => ())
    extends BaseSnapshot {
  private var taken: BaseSnapshot = _
  private var closed = false

  private def snapshot: BaseSnapshot = synchronized {
    if (closed) throw new IllegalStateException("The snapshot is closed.")
    if (taken == null) taken = take()
    taken
  }

  override def prepare(): Unit = ready()

  override def version: Long = snapshot.version

  override def stateId: String = snapshot.stateId

  override def rows: Long = snapshot.rows

  override def rawBytes: Long = snapshot.rawBytes

  override def write(out: OutputStream): SegmentInfo = snapshot.write(out)

  override def toBytes(): SegmentBytes = snapshot.toBytes()

  override def close(): Unit = synchronized {
    closed = true
    if (taken != null) taken.close()
    // A holder of this, such as a queue, keeps none of the state.
    taken = null
    take = null
    ready = () => ()
  }
}
