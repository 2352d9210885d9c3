// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.locate

import scala.collection.mutable

import io.github.sparkckpt.engine.backend.HashMapStateBackend
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.ckpt.families.ColumnFamily
import org.apache.spark.sql.ckpt.files.{NewSegments, StateFiles}
import org.apache.spark.sql.ckpt.protocol.SegmentRef
import org.apache.spark.sql.execution.streaming.state.{NoPrefixKeyStateEncoderSpec, StateStoreId}
import org.apache.spark.sql.types.{LongType, StructField, StructType}
import org.apache.spark.unsafe.Platform
import org.apache.spark.util.Utils

class StateDeltasSuite extends AnyFunSuite {
  private val files = new StateFiles(new Path(Utils.createTempDir(namePrefix = "deltas").toURI), new Configuration())
  private val backend = new HashMapStateBackend(4)
  private val bases = mutable.Map.empty[Long, SegmentRef]
  private val deltas = mutable.Map.empty[Long, SegmentRef]

  private val number = StructType(Seq(StructField("n", LongType)))
  private val partitions = new RowPartitions(
    StateStoreId("state", 0, 0),
    ColumnFamily(
      "default", number, number, NoPrefixKeyStateEncoderSpec(number), multiValue = false, isInternal = false),
    new Configuration())

  // Six batches; the third changes nothing.
  for (version <- 1L to 6L) {
    val family = backend.declareFamily("default", (_, _, _) => 0)
    backend.openForWrite(version - 1)
    val snapshot = backend.snapshotBase()
    try bases(version - 1) = NewSegments.inline(0, version - 1, snapshot.toBytes()) finally snapshot.close()
    val key = Array.fill[Byte](8)(version.toByte)
    val start = Platform.BYTE_ARRAY_OFFSET
    if (version != 3) family.put(key, start, 8, key, start, 8)
    backend.commit()
    deltas(version) = NewSegments.inline(version, version, backend.deltaBytes())
  }

  private def located(segments: SegmentRef*) =
    StateLocation("id", Array(4), "operator", None, 0, segments)

  /** Versions of the deltas between two versions, from the retained checkpoints. */
  private def versions(from: Long, until: Long)(retained: (Long, StateLocation)*): Seq[Long] =
    deltasOf(from, until, ofBatches = true)(retained: _*).map { case (found, delta) =>
      assert(found.read(delta, "default").map(_.key(0).toLong) == Seq(delta.version))
      delta.version
    }

  private def deltasOf(from: Long, until: Long, ofBatches: Boolean)(
      retained: (Long, StateLocation)*): Seq[(StateDeltas, FilteredDelta)] = {
    val places = retained.toMap
    def locate(version: Long): StateLocation =
      places.getOrElse(version, throw new CheckpointFailure("CheckpointNotFoundError", s"$version is not retained"))
    val found = new StateDeltas("store", locate, files, partitions)
    found.between(from, until, locate(until), ofBatches).map(delta => (found, delta))
  }

  test("deltas that were merged are in the checkpoint of the last of their versions") {
    val newest = 6L -> located(deltas(1), deltas(4).copy(firstVersion = 2), deltas(5), deltas(6))
    val older = 4L -> located(deltas(1), deltas(2), deltas(4))
    assert(versions(4, 6)(newest) == Seq(5, 6))
    assert(versions(0, 6)(newest, older) == Seq(1, 2, 4, 5, 6))
    assert(versions(2, 6)(newest, older) == Seq(4, 5, 6))
    val failure = intercept[CheckpointFailure](versions(2, 6)(newest))
    assert(failure.error == "CheckpointNotFoundError" && failure.reason.contains("Batches 4 to 5 are available"))
  }

  test("a replay of batches applies merged deltas, if all their batches are wanted") {
    val newest = 6L -> located(deltas(1), deltas(4).copy(firstVersion = 2), deltas(5), deltas(6))
    def replayed(from: Long) = deltasOf(from, 6, ofBatches = false)(newest).map(_._2.version)
    assert(replayed(1) == Seq(4, 5, 6) && replayed(4) == Seq(5, 6))
    assert(intercept[CheckpointFailure](replayed(2)).reason.contains("Batches 4 to 5"))
  }

  test("without a base all deltas are in one checkpoint") {
    val all = 6L -> located((1L to 6L).map(deltas): _*)
    assert(versions(0, 6)(all) == Seq(1, 2, 4, 5, 6))
    assert(versions(2, 6)(all) == Seq(4, 5, 6) && versions(6, 6)(all).isEmpty)
  }

  test("deltas from before a base are in the checkpoint that the base is of") {
    val newest = 6L -> located(bases(4), deltas(5), deltas(6))
    val ofBase = 4L -> located(bases(2), deltas(4))
    val oldest = 2L -> located(deltas(1), deltas(2))
    assert(versions(4, 6)(newest) == Seq(5, 6))
    assert(versions(2, 6)(newest, ofBase) == Seq(4, 5, 6))
    assert(versions(0, 6)(newest, ofBase, oldest) == Seq(1, 2, 4, 5, 6))
    assert(intercept[CheckpointFailure](versions(0, 6)(newest, ofBase)).reason.contains("2 is not retained"))
  }

  test("changes from before a rescale are an error: another subtask may have made them") {
    val newest = 6L -> located(bases(4), deltas(5), deltas(6)).copy(parallelism = Some(3))
    val before = 4L -> located(bases(2), deltas(4)).copy(parallelism = Some(2))
    assert(versions(4, 6)(newest, before) == Seq(5, 6))
    assert(intercept[CheckpointFailure](versions(2, 6)(newest, before)).reason.contains("rescaled"))
  }

  test("changes that went into a base are an error, not nothing") {
    val merged = 5L -> located(bases(5))
    assert(versions(5, 5)(merged).isEmpty)
    assert(intercept[CheckpointFailure](versions(3, 5)(merged)).reason.contains("batch 4"))
  }
}
