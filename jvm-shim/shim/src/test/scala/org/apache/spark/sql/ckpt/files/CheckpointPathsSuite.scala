// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.files

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}
import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.ckpt.locate.{DirectoryLocator, MetadataReader}
import org.apache.spark.sql.ckpt.protocol.Message
import org.apache.spark.sql.execution.streaming.state.StateStoreId
import org.apache.spark.util.Utils

/** The rule for paths that stand in files, on the table that the tests in Python have too. */
class CheckpointPathsSuite extends AnyFunSuite {
  private val table = Message.mapper.readTree(Files.readString(
    Iterator.iterate(Paths.get("").toAbsolutePath)(_.getParent)
      .map(_.resolve("tests/storage/paths.json")).find(Files.exists(_)).get))

  private def paths(kind: String, which: String): Seq[String] = {
    val found = table.path(kind).path(which).elements().asScala.map(_.asText()).toSeq
    assert(found.nonEmpty)
    found
  }

  /** A `_metadata` with one handle, of this path. */
  private def metadata(path: String): DataInputStream = {
    val bytes = new ByteArrayOutputStream
    val out = new DataOutputStream(bytes)
    Seq(0x4960672D, 3).foreach(out.writeInt)
    out.writeLong(1)
    Seq(0, 1).foreach(out.writeInt) // master states, operators
    out.write(new Array[Byte](16))
    Seq(1, 1).foreach(out.writeInt)
    out.writeByte(0) // coordinator state
    Seq(1, 0, 0, 0).foreach(out.writeInt) // subtasks, index, operator states
    out.writeByte(3)
    Seq(0, 1).foreach(out.writeInt) // key groups
    out.writeLong(0)
    out.writeByte(6)
    out.writeUTF(path)
    out.writeLong(10)
    out.writeByte(0)
    Seq(0, 0).foreach(out.writeInt)
    new DataInputStream(new ByteArrayInputStream(bytes.toByteArray))
  }

  private def read(path: String): Option[String] =
    MetadataReader.using("the file", metadata(path))(_.read(_ => Set(0), (_, _, _) => ()))(0).head.file.map(_.name)

  test("a _metadata may name state files of ours, and nothing else") {
    paths("state", "good").foreach(path => assert(read(path).map("../" + _).contains(path)))
    paths("state", "bad").foreach { path =>
      val failure = intercept[CheckpointFailure](read(path))
      assert(failure.error == "PathEscapeError" && failure.reason.contains("the file"), path)
    }
  }

  test("a record may name a _metadata of ours, and nothing else") {
    paths("metadata", "good").foreach(path => assert(CheckpointPaths.isMetadata(path), path))
    paths("metadata", "bad").foreach(path => assert(!CheckpointPaths.isMetadata(path), path))
    val ckpt = Utils.createTempDir(namePrefix = "ckpt").toPath
    val files = new StateFiles(new HadoopPath(ckpt.toUri), new Configuration)
    Files.createDirectory(ckpt.resolve("completed"))
    def locate(path: String): CheckpointFailure = {
      val record = Message.newHeader().put("kind", "checkpoint").put("id", 1).put("version", 1)
      record.putObject("metadata").put("path", path)
      Files.writeString(ckpt.resolve("completed/00000000000000000001.json"), record.toString)
      intercept[CheckpointFailure](new DirectoryLocator(files).locate(StateStoreId(ckpt.toString, 0, 0), 1))
    }
    paths("metadata", "bad").foreach(path => assert(locate(path).error == "PathEscapeError", path))
    delete(ckpt)
  }

  private def delete(path: Path): Unit = {
    if (Files.isDirectory(path)) Files.list(path).iterator().asScala.toSeq.foreach(delete)
    Files.delete(path)
  }
}
