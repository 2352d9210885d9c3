// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compaction

import scala.collection.mutable
import scala.util.control.NonFatal

import io.github.sparkckpt.engine.compaction.{MergeInput, NoLongerNeededException, SegmentMerger}
import io.github.sparkckpt.engine.segment.{BlockCodec, ByteSource, SegmentInfo, StateSegment}

import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.ckpt.files.{NewSegments, StateFiles}
import org.apache.spark.sql.ckpt.protocol.{CompactionRequest, SegmentRef}

/**
 * Merges of one store's deltas. It reads them from local copies if there are some, else from their files.
 *
 * @param inlineLimit bytes up to which a merged delta travels with the ack
 * @param recent      local copies
 * @param codec       codec of the merged delta's blocks
 */
private[ckpt] final class DeltaMerges(
    files: StateFiles, inlineLimit: () => Long, recent: RecentDeltas, codec: BlockCodec) {

  /**
   * Writes the merged delta.
   *
   * @param store for messages
   * @param pass  called before each key group; throws [[NoLongerNeededException]] to stop the merge
   * @throws CheckpointFailure       if it cannot be written; the deltas stay as they are
   * @throws NoLongerNeededException if it is stopped
   */
  def write(store: String, request: CompactionRequest, pass: () => Unit): SegmentRef = {
    val opened = mutable.ArrayBuffer.empty[ByteSource]
    try {
      val inputs = request.inputs.map { delta =>
        val source = open(delta)
        opened += source
        MergeInput(delta.keyGroups, StateSegment(isBase = false, source, offsetsIn(source, delta)))
      }
      val merger = new SegmentMerger(codec)
      val bytes = request.inputs.map(_.size).sum
      if (bytes <= inlineLimit()) {
        val merged = merger.mergeToBytes(inputs, request.version, bytes, pass)
        recent.add(request.firstVersion, request.version, merged.bytes.length)(_.write(merged.bytes))
        NewSegments.inline(request.firstVersion, request.version, merged)
      } else {
        NewSegments.inFile(files, "deltas", request.firstVersion, request.version) { out =>
          var info: SegmentInfo = null
          recent.tee(request.firstVersion, request.version, bytes, out)(to =>
            info = merger.merge(inputs, request.version, to, pass))
          info
        }
      }
    } catch {
      case e: NoLongerNeededException => throw e
      case NonFatal(e) =>
        throw new CheckpointFailure("DeltaMergeError",
          s"$store: the deltas of versions ${request.firstVersion} to ${request.version} were not merged: $e. The " +
            "state is complete without; the coordinator will ask again", e)
    } finally {
      opened.foreach(source => try source.close() catch { case NonFatal(_) => () })
    }
  }

  private def open(delta: SegmentRef): ByteSource =
    recent.open(delta.firstVersion, delta.version, delta.size).getOrElse(files.source(delta))

  /** Starts of the blocks in a source: a local copy has the delta alone. */
  private def offsetsIn(source: ByteSource, delta: SegmentRef): Array[Long] = source match {
    case _: LocalCopy => delta.offsets.map(_ - delta.offsets.min)
    case _ => delta.offsets
  }
}
