// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.locate

import java.io.Closeable

import scala.collection.mutable.ArrayBuffer

import io.github.sparkckpt.engine.segment.{ByteSource, StateSegment}

import org.apache.spark.sql.ckpt.files.{ReadAhead, StateFiles}
import org.apache.spark.sql.ckpt.protocol.{CompactionRequest, LocateReply, RestorePlan, SegmentRef}

/**
 * Location of the state of a version: the reply to `locate` (docs/protocol.md, section 1.3).
 *
 * @param stateId     id of the state, empty at version 0
 * @param parallelism number of the store's subtasks at that version, if found in the directory
 * @param compaction  what the coordinator wants the store to do to the chain of that version
 * @param restore     the coordinator's plan for loading it
 * @param keepDeltas  copies of deltas are worth their bytes, because they will be merged
 */
private[ckpt] final case class StateLocation(
    stateId: String,
    factors: Array[Int],
    operator: String,
    stateFormatVersion: Option[Int],
    rows: Long,
    segments: Seq[SegmentRef],
    parallelism: Option[Int] = None,
    compaction: CompactionRequest = CompactionRequest.Nothing,
    restore: RestorePlan = RestorePlan.AtOnce,
    keepDeltas: Boolean = false)

private[ckpt] object StateLocation {
  def of(reply: LocateReply): StateLocation = StateLocation(
    reply.stateId.getOrElse(""),
    reply.keyGroupFactors,
    reply.operator,
    reply.stateFormatVersion,
    reply.rows,
    reply.segments,
    compaction = reply.compaction,
    restore = reply.restore,
    keepDeltas = reply.keepDeltas)
}

/**
 * The open segments of a location, with a count of the bytes read. Where requests take long, all files are read ahead
 * at the same time.
 *
 * @param byKeyGroup true if they may be loaded one key group at a time
 */
private[ckpt] final class OpenSegments(
    location: StateLocation, files: StateFiles, partitions: RowPartitions, byKeyGroup: Boolean = false)
    extends Closeable {
  private val sources = ArrayBuffer.empty[ByteSource]
  private val ahead = new ReadAhead(files)
  private var bytes = 0L

  def bytesRead: Long = bytes

  /** Opens all segments; `close` closes them even after an error. */
  def open(): Seq[StateSegment] = {
    val opened = location.segments.map { segment =>
      val source = segment.file.filter(_ => files.isRemote)
        .fold(files.source(segment))(ahead.source(_, segment.offsets))
      sources += source
      // Files that are read ahead come one after another.
      val keyGroups = if (byKeyGroup && !files.isRemote) segment.keyGroups else Array.emptyIntArray
      StateSegment(
        segment.isBase, new Counted(source), segment.offsets, partitions.filter(location, segment), keyGroups)
    }
    ahead.start()
    opened
  }

  override def close(): Unit = sources.foreach(_.close())

  private final class Counted(source: ByteSource) extends ByteSource {
    override def name: String = source.name

    override def length: Long = source.length

    override def readFully(position: Long, buffer: Array[Byte], from: Int, count: Int): Unit = {
      source.readFully(position, buffer, from, count)
      bytes += count
    }

    override def close(): Unit = source.close()
  }
}
