package org.apache.spark.sql.ckpt.backend

import java.io.{Closeable, OutputStream}
import java.util.concurrent.atomic.AtomicBoolean

/**
 * A consistent view of all tables at one version, made by [[HashMapStateBackend.snapshotBase]]. Written
 * by any one thread while batches go on, and then closed: until then the tables copy each page before
 * they first change it.
 */
final class BaseSnapshot private[backend] (
    val version: Long,
    maxParallelism: Int,
    families: Array[(String, Boolean, TableSnapshot)])
  extends Closeable {

  private val closed = new AtomicBoolean

  /** Rows in it. */
  def rows: Long = families.iterator.map(_._3.count).sum

  /** Bytes of the keys and values in it: about the size of the base segment. */
  def rawBytes: Long = families.iterator.map(_._3.rawBytes).sum

  /**
   * Writes a base segment, block by block. The stream is not closed.
   *
   * @throws IllegalStateException if the snapshot is closed
   * @throws StateTooLargeException if one key group has more than 1 GiB
   */
  def write(out: OutputStream): SegmentInfo = {
    if (closed.get()) throw new IllegalStateException("The snapshot is closed.")
    val sources = families.collect {
      case (name, multiValue, table) if table.count > 0 =>
        new SnapshotSource(name, multiValue, table): SegmentSource
    }
    new SegmentWriter(maxParallelism).write(sources, isBase = true, version, out)
  }

  /** The base segment in memory; [[StateTooLargeException]] above 1 GiB. */
  def toBytes(): SegmentBytes = {
    val buffer = new SegmentBuffer(rawBytes + math.min(rows, maxParallelism.toLong) * 56)
    val info = write(buffer)
    SegmentBytes(info, buffer.toArray)
  }

  /** Ends the sharing of pages; after that it cannot be written. Idempotent, from any thread. */
  override def close(): Unit = {
    if (closed.compareAndSet(false, true)) families.foreach(_._3.close())
  }
}
