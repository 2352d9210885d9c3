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
package org.apache.spark.sql.ckpt.backend

import java.io.OutputStream
import java.util.concurrent.atomic.AtomicBoolean

/**
 * A consistent view of all tables at one version. Until it is closed, the tables copy each page before its first
 * change.
 */
private[backend] final class HashMapSnapshot(
    state: StateVersion,
    maxParallelism: Int,
    families: Array[(String, Boolean, TableSnapshot)],
    codec: BlockCodec,
    tier: LocalTier)
  extends BaseSnapshot {
  import HashMapSnapshot._

  private val closed = new AtomicBoolean

  override def version: Long = state.version

  override def stateId: String = state.stateId

  override def rows: Long = families.iterator.map(_._3.count).sum

  override def rawBytes: Long = families.iterator.map(_._3.rawBytes).sum

  override def write(out: OutputStream): SegmentInfo = {
    if (closed.get()) throw new IllegalStateException("The snapshot is closed.")
    if (families.exists(_._3.hasEvicted)) writeSorted(out) else writeDirectly(out)
  }

  private def writeDirectly(out: OutputStream): SegmentInfo = {
    val sources = families.collect {
      case (name, multiValue, table) if table.count > 0 =>
        new SnapshotSource(name, multiValue, table): SegmentSource
    }
    new SegmentWriter(maxParallelism, codec).write(sources, isBase = true, version, out)
  }

  /** By an external sort: it reads each evicted page once, and needs bounded memory. */
  private def writeSorted(out: OutputStream): SegmentInfo = {
    val bufferBytes = math.max(leastBuffer, math.min(rawBytes / 64, MostBuffer))
    val writer = new BaseWriter(maxParallelism, bufferBytes, codec, () => tier.newFile().toFile)
    try {
      families.foreach { case (name, multiValue, table) =>
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
    if (closed.compareAndSet(false, true)) families.foreach(_._3.close())
  }
}

private[backend] object HashMapSnapshot {

  /** Bounds of the memory that sorts a snapshot of state on the local disk, in bytes. */
  private final val MostBuffer = 64L << 20

  /** Tests lower it, to sort a small state in a file. */
  @volatile private[backend] var leastBuffer: Long = 8L << 20
}
