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
package org.apache.spark.sql.ckpt

import java.io.{ByteArrayOutputStream, IOException}
import java.net.URI

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, FileSystem, FilterFileSystem, FSDataOutputStream}
import org.apache.hadoop.fs.{FSDataOutputStreamBuilder, Path, RawLocalFileSystem}
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

class CheckpointLogFileManagerSuite extends AnyFunSuite {

  private def withManager(scheme: String)(body: (CheckpointLogFileManager, Path, PuttingFileSystem) => Unit): Unit = {
    val directory = Utils.createTempDir(namePrefix = "logs").toPath
    val conf = new Configuration()
    conf.setClass("fs.put.impl", classOf[PuttingFileSystem], classOf[FileSystem])
    conf.set(SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key, classOf[CheckpointLogFileManager].getName)
    val location = new Path(s"$scheme:$directory")
    val fs = location.getFileSystem(conf) match {
      case putting: PuttingFileSystem => putting
      case _ => new PuttingFileSystem
    }
    fs.requests = 0
    fs.fault = NoFault
    body(new CheckpointLogFileManager(location, conf), new Path(location, "0"), fs)
  }

  private def write(manager: CheckpointLogFileManager, path: Path, text: String): Unit = {
    val out = manager.createAtomic(path, overwriteIfPossible = false)
    out.write(text.getBytes)
    out.close()
  }

  private def read(manager: CheckpointLogFileManager, path: Path): String = {
    val in = manager.open(path)
    try new String(in.readAllBytes()) finally in.close()
  }

  test("an entry is one conditional put, and there when it is closed") {
    withManager("put") { (manager, path, fs) =>
      val out = manager.createAtomic(path, overwriteIfPossible = false)
      out.write("v1".getBytes)
      assert(!manager.exists(path) && fs.requests == 0)
      out.close()
      out.close()
      assert(read(manager, path) == "v1" && fs.requests == 1)
    }
  }

  test("of two drivers that write different entries the second is told so") {
    withManager("put") { (manager, path, _) =>
      write(manager, path, "of the first")
      intercept[FileAlreadyExistsException](write(manager, path, "of the second"))
      assert(read(manager, path) == "of the first")
    }
  }

  test("a put that was repeated, because its answer got lost, finds itself") {
    withManager("put") { (manager, path, fs) =>
      fs.fault = LosesAnswer
      write(manager, path, "v1")
      assert(read(manager, path) == "v1")
    }
  }

  test("a put that failed is an error, and leaves nothing") {
    withManager("put") { (manager, path, fs) =>
      fs.fault = Refuses
      assert(intercept[IOException](write(manager, path, "v1")).getMessage == "refused")
      assert(!manager.exists(path))
      fs.fault = NoFault
      write(manager, path, "v1")
      assert(read(manager, path) == "v1")
    }
  }

  test("a cancelled entry leaves nothing") {
    withManager("put") { (manager, path, fs) =>
      val out = manager.createAtomic(path, overwriteIfPossible = false)
      out.write("v1".getBytes)
      out.cancel()
      out.close()
      assert(!manager.exists(path) && fs.requests == 0)
    }
  }

  test("no query starts on a savepoint") {
    for (scheme <- Seq("file", "put")) {
      withManager(scheme) { (manager, path, _) =>
        assert(manager.createCheckpointDirectory().getName == path.getParent.getName)
        val record = new Path(path.getParent, "savepoint.json")
        write(manager, record, "{}")
        val refused = intercept[CheckpointFailure](manager.createCheckpointDirectory())
        assert(refused.error == "SavepointLocationError")
        assert(refused.reason.contains(s"spark-ckpt restore ${path.getParent} NEW_LOCATION"))
        assert(manager.list(path.getParent, _ => true).map(_.getPath.getName).forall(_.endsWith("savepoint.json")))
      }
    }
  }

  test("Spark's way stays on a local disk, and for what may be overwritten") {
    withManager("file") { (manager, path, fs) =>
      write(manager, path, "v1")
      assert(read(manager, path) == "v1" && fs.requests == 0)
      intercept[FileAlreadyExistsException](write(manager, path, "v2"))
    }
    withManager("put") { (manager, path, _) =>
      assert(!manager.createAtomic(path, overwriteIfPossible = true).isInstanceOf[ExclusiveOutputStream])
    }
  }
}

private[ckpt] sealed trait Fault
private[ckpt] case object NoFault extends Fault
private[ckpt] case object LosesAnswer extends Fault
private[ckpt] case object Refuses extends Fault

/**
 * A folder that behaves as an object store: a file appears whole with one request, which may say "if there is none".
 */
private[ckpt] class PuttingFileSystem extends FilterFileSystem(new Folder) {
  var requests = 0
  var fault: Fault = NoFault

  override def hasPathCapability(path: Path, capability: String): Boolean =
    capability == "fs.capability.outputstream.abortable" || super.hasPathCapability(path, capability)

  override def createFile(path: Path): FSDataOutputStreamBuilder[_, _] = new PutBuilder(this, path)

  def put(path: Path, content: Array[Byte], ifAbsent: Boolean): Unit = {
    requests += 1
    if (fault == Refuses) throw new IOException("refused")
    if (ifAbsent && exists(path)) throw new FileAlreadyExistsException(path.toString)
    val out = create(path, true)
    try out.write(content) finally out.close()
    if (fault == LosesAnswer) put(path, content, ifAbsent)
  }
}

private class Folder extends RawLocalFileSystem {
  override def getUri: URI = URI.create("put:///")
}

private class PutBuilder(fs: PuttingFileSystem, path: Path)
    extends FSDataOutputStreamBuilder[FSDataOutputStream, PutBuilder](fs, path) {

  override def getThisBuilder: PutBuilder = this

  override def build(): FSDataOutputStream = {
    val ifAbsent = getOptions.getBoolean("fs.option.create.conditional.overwrite", false)
    val bytes = new ByteArrayOutputStream {
      override def close(): Unit = fs.put(path, toByteArray, ifAbsent)
    }
    new FSDataOutputStream(bytes, null)
  }
}
