// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.ckpt.locate

import java.io.{DataInputStream, IOException}

import scala.collection.mutable

import org.apache.spark.sql.ckpt.common.{CheckpointFailure, FormatDescription => Format}
import org.apache.spark.sql.ckpt.files.CheckpointPaths
import org.apache.spark.sql.ckpt.protocol.{Blocks, LocatedFile}

/**
 * Reader of one subtask's state handles in a `_metadata` of ours. Executors need it only without a coordinator, for the
 * `statestore` data source. All else about these files is in Python (`spark_ckpt.metadata`).
 *
 * Layout: `org.apache.flink.runtime.checkpoint.metadata.MetadataV3Serializer`. The reader understands only what
 * spark-ckpt writes, and names anything else in its error.
 *
 * @param name of the file, for errors
 */
private[ckpt] final class MetadataReader(name: String, in: DataInputStream) {
  import MetadataReader.NoHandle

  /**
   * Reads the whole file.
   *
   * @param subtasks the wanted subtasks of an operator
   * @param onMaster receives the identifier, format version and payload of each master state, before the operators
   * @return the handles of segments in their order, by subtask
   */
  def read(subtasks: Array[Byte] => Set[Int], onMaster: (String, Int, Array[Byte]) => Unit)
      : Map[Int, Seq[SegmentHandle]] = {
    expect("magic number", in.readInt(), Format.MetadataMagic)
    expect("version", in.readInt(), Format.MetadataVersion)
    in.readLong() // checkpoint id
    repeat(in.readInt(), "master states")(master(onMaster))
    val found = mutable.Map.empty[Int, Seq[SegmentHandle]]
    repeat(in.readInt(), "operators") {
      val id = new Array[Byte](Format.OperatorIdBytes)
      in.readFully(id)
      val wanted = subtasks(id)
      in.readInt() // parallelism
      in.readInt() // max parallelism
      stream() // coordinator state
      repeat(in.readInt(), "subtasks") {
        val index = in.readInt()
        if (in.readInt() != 0) operatorHandle()
        if (in.readInt() != 0) operatorHandle()
        val managed = keyed()
        keyed()
        expect("input channel states", in.readInt(), 0)
        expect("result subpartition states", in.readInt(), 0)
        if (wanted(index)) found(index) = managed
      }
    }
    found.toMap
  }

  private def master(onMaster: (String, Int, Array[Byte]) => Unit): Unit = {
    expect("magic number of a master state", in.readInt(), Format.MasterStateMagic)
    in.readInt() // length
    val version = in.readInt()
    val identifier = in.readUTF()
    onMaster(identifier, version, bytes())
  }

  private def keyed(): Seq[SegmentHandle] = in.readByte().toInt match {
    case NoHandle => Nil
    case Format.KeyGroupsHandle => Seq(keyGroups())
    case Format.ChangelogHandle =>
      in.readInt() // first key group
      in.readInt() // number of key groups
      in.readLong() // checkpointed size
      val segments = Seq.fill(count("materialised handles"))(keyed()).flatten
      expect("non-materialised handles", in.readInt(), 0)
      in.readLong() // materialisation id
      in.readUTF() // state handle id
      segments
    case other => throw refuse(s"keyed state handle of type $other")
  }

  private def keyGroups(): SegmentHandle = {
    val first = in.readInt()
    val blocks = Array.tabulate(count("key groups"))(i => (in.readLong(), first + i)).filter(_._1 >= 0).sorted
    stream() match {
      case Some((file, data)) => SegmentHandle(file, new Blocks(blocks.map(_._2), blocks.map(_._1), data))
      case None => throw refuse("a key-group handle without a stream")
    }
  }

  /** A state file, or the bytes of an inline state. */
  private def stream(): Option[(Option[LocatedFile], Array[Byte])] = in.readUnsignedByte() match {
    case NoHandle => None
    case Format.ByteStreamHandle =>
      in.readUTF() // handle name
      Some((None, bytes()))
    case Format.RelativeFileHandle =>
      val path = in.readUTF()
      val bytes = in.readLong()
      val file = CheckpointPaths.stateOf(path).getOrElse(throw CheckpointPaths.refused(path, name))
      Some((Some(LocatedFile(file, bytes)), Array.emptyByteArray))
    case other => throw refuse(s"stream handle of type $other")
  }

  private def operatorHandle(): Unit = {
    expect("operator state handle", in.readByte().toInt, Format.OperatorStreamHandle)
    repeat(in.readInt(), "operator states") {
      in.readUTF()
      in.readByte()
      repeat(in.readInt(), "partitions")(in.readLong())
    }
    stream()
  }

  private def bytes(): Array[Byte] = {
    val length = count("bytes")
    val read = in.readNBytes(length)
    if (read.length != length) throw refuse(s"$length bytes needed, ${read.length} left")
    read
  }

  private def count(what: String): Int = {
    val n = in.readInt()
    if (n < 0) throw refuse(s"$n $what")
    n
  }

  private def repeat(n: Int, what: String)(body: => Unit): Unit = {
    if (n < 0) throw refuse(s"$n $what")
    var i = 0
    while (i < n) {
      body
      i += 1
    }
  }

  private def expect(what: String, found: Int, wanted: Int): Unit =
    if (found != wanted) throw refuse(s"$what $found instead of $wanted")

  private def refuse(what: String) = new CheckpointFailure("MetadataFormatError",
    s"$name contains $what: it is damaged, or spark-ckpt did not write it")
}

private[ckpt] object MetadataReader {
  private final val NoHandle = 0

  /** Reads a `_metadata` file and closes it; names the file if it ends early. */
  def using[A](name: String, in: DataInputStream)(body: MetadataReader => A): A =
    try body(new MetadataReader(name, in)) catch {
      case e: IOException =>
        throw new CheckpointFailure("MetadataFormatError", s"$name cannot be read to its end: ${e.getMessage}", e)
    } finally in.close()
}
