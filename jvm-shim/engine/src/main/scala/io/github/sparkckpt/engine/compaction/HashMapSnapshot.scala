// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.compaction

import java.io.OutputStream
import java.util.concurrent.atomic.AtomicBoolean

import io.github.sparkckpt.engine.bytes.EntryCursor
import io.github.sparkckpt.engine.pages.LocalTier
import io.github.sparkckpt.engine.segment._
import io.github.sparkckpt.engine.table.TableSnapshot

/**
 * A consistent view of all tables at one version. Until it is closed, the tables copy each page before its first
 * change.
 *
 * @param ends called once it is closed
 */
private[engine] final class HashMapSnapshot(
    override val version: Long,
    override val stateId: String,
    maxParallelism: Int,
    @volatile private var families: Array[(String, Boolean, TableSnapshot)],
    codec: BlockCodec,
    tier: LocalTier,
    ends: HashMapSnapshot => Unit = _ => ())
  extends BaseSnapshot {
  import HashMapSnapshot._

  private val closed = new AtomicBoolean
  @volatile private var writing: () => Long = () => 0L

  /** Bytes of memory of its writer, apart from the pages. From any thread. */
  def memoryBytes: Long = writing()

  override def rows: Long = families.iterator.map(_._3.count).sum

  override def rawBytes: Long = families.iterator.map(_._3.rawBytes).sum

  override def write(out: OutputStream): SegmentInfo = {
    // In this order, or a snapshot that is closed meanwhile would seem to be empty.
    val all = families
    if (closed.get()) throw new IllegalStateException("The snapshot is closed.")
    try {
      if (all.exists(_._3.hasEvicted)) writeSorted(all, out) else writeDirectly(all, out)
    } finally writing = () => 0L
  }

  private def writeDirectly(all: Array[(String, Boolean, TableSnapshot)], out: OutputStream): SegmentInfo = {
    val sources = all.collect {
      case (name, multiValue, table) if table.count > 0 =>
        new SnapshotSource(name, multiValue, table): SegmentSource
    }
    val writer = new SegmentWriter(maxParallelism, codec)
    writing = () => writer.memoryBytes
    writer.write(sources, isBase = true, version, out)
  }

  /** By an external sort: it reads each evicted page once, and needs bounded memory. */
  private def writeSorted(all: Array[(String, Boolean, TableSnapshot)], out: OutputStream): SegmentInfo = {
    val bufferBytes = math.max(minBuffer, math.min(rawBytes / 64, MaxBuffer))
    val writer = new BaseWriter(maxParallelism, bufferBytes, codec, () => tier.newFile().toFile)
    writing = () => writer.memoryBytes
    try {
      all.foreach { case (name, multiValue, table) =>
        writer.startFamily(name, multiValue)
        val walk = table.walk()
        val cursor = new EntryCursor
        while (walk.next() != 0) {
          walk.point(cursor)
          writer.addEntry(cursor.keyGroup, cursor.keyBase, cursor.keyOffset, cursor.keyLength,
            cursor.valueBase, cursor.valueOffset, cursor.valueLength)
        }
      }
      writer.write(version, out)
    } finally writer.close()
  }

  override def toBytes(): SegmentBytes = {
    val buffer = new SegmentBuffer(rawBytes + math.min(rows, maxParallelism.toLong) * 56)
    val info = write(buffer)
    SegmentBytes(info, buffer.toArray)
  }

  /** Ends the sharing of pages; the snapshot cannot be written afterwards. Idempotent, from any thread. */
  override def close(): Unit = {
    if (closed.compareAndSet(false, true)) {
      families.foreach(_._3.close())
      // A holder of this keeps none of the state.
      families = Array.empty
      ends(this)
    }
  }
}

private[engine] object HashMapSnapshot {

  /** Bounds of the memory that sorts a snapshot of state on the local disk, in bytes. */
  private final val MaxBuffer = 64L << 20

  /** Tests lower it, to sort a small state in a file. */
  @volatile private[engine] var minBuffer: Long = 8L << 20
}
