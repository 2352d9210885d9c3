// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.files

import java.nio.file.Files

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataOutputStream, LocalFileSystem, Path, RawLocalFileSystem}
import org.apache.spark.util.Utils
import org.scalatest.funsuite.AnyFunSuite

class StateFilesSuite extends AnyFunSuite {
  private def names(directory: java.nio.file.Path): Seq[String] =
    Files.list(directory).iterator().asScala.map(_.getFileName.toString).toSeq

  test("a file has its bytes, a name of its own, and nothing beside it") {
    val directory = Utils.createTempDir(namePrefix = "state-files").toPath
    val files = new StateFiles(new Path(directory.toUri), new Configuration())
    val first = files.write("delta")(_.write(Array[Byte](1, 2, 3)))
    val second = files.write("delta")(_.write(Array[Byte](4)))
    assert(first != second && first.startsWith("shared/delta-"))
    assert(files.length(first) == 3)
    assert(names(directory.resolve("shared")).map("shared/" + _).toSet == Set(first, second))
  }

  test("a write that fails leaves nothing behind") {
    val directory = Utils.createTempDir(namePrefix = "state-files").toPath
    val files = new StateFiles(new Path(directory.toUri), new Configuration())
    intercept[IllegalStateException] {
      files.write("base") { out =>
        out.write(1)
        throw new IllegalStateException("no")
      }
    }
    assert(names(directory.resolve("shared")).isEmpty)
  }

  test("a local file is synced before it has its name, and then the names") {
    val directory = Utils.createTempDir(namePrefix = "state-files").toPath.resolve("ckpt")
    val conf = new Configuration()
    conf.set("fs.file.impl", classOf[RecordingFileSystem].getName)
    conf.setBoolean("fs.file.impl.disable.cache", true)
    RecordingFileSystem.events.clear()
    def sync(path: Path): Unit = RecordingFileSystem.events.add(s"directory ${path.getName}")
    val files = new StateFiles(new Path(directory.toUri), conf, sync)
    files.write("delta")(_.write(Array[Byte](1, 2, 3)))
    files.write("base")(_.write(4))
    val directories = Seq("shared", "ckpt", directory.getParent.getFileName.toString).map("directory " + _)
    val first = Seq("sync 3", "rename") ++ directories
    assert(RecordingFileSystem.events.asScala.toSeq == first ++ Seq("sync 1", "rename", "directory shared"))
  }

  test("a local directory can be synced") {
    val directory = Utils.createTempDir(namePrefix = "state files %20").toPath
    val files = new StateFiles(new Path(directory.toUri), new Configuration())
    assert(files.length(files.write("delta")(_.write(1))) == 1)
  }
}

object RecordingFileSystem {
  val events = new java.util.concurrent.ConcurrentLinkedQueue[String]
}

/** Local file system that records syncs and renames. */
class RecordingFileSystem extends LocalFileSystem(new RecordingRawFileSystem)

class RecordingRawFileSystem extends RawLocalFileSystem {
  import RecordingFileSystem.events

  override def create(file: Path, overwrite: Boolean, bufferSize: Int, replication: Short, blockSize: Long,
      progress: org.apache.hadoop.util.Progressable): FSDataOutputStream = {
    val stream = super.create(file, overwrite, bufferSize, replication, blockSize, progress)
    new FSDataOutputStream(stream, null) {
      override def hsync(): Unit = {
        stream.hsync()
        events.add(s"sync ${Files.size(java.nio.file.Paths.get(file.toUri.getPath))}")
      }
    }
  }

  override def rename(source: Path, target: Path): Boolean = {
    events.add("rename")
    super.rename(source, target)
  }
}
