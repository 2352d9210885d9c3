// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.bridge

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.{LosesAnswer, NoFault, PuttingFileSystem, Refuses}
import org.apache.spark.sql.ckpt.protocol.Message
import org.apache.spark.util.Utils

/** Exclusive creates; `tests/storage/test_hdfs.py` and `test_hadoop_s3a.py` test the class on real file systems. */
class HadoopFilesSuite extends AnyFunSuite {

  private def withFiles(body: (HadoopFiles, Path, PuttingFileSystem) => Unit): Unit = {
    val directory = Utils.createTempDir(namePrefix = "files").toPath
    val conf = new Configuration()
    conf.setClass("fs.put.impl", classOf[PuttingFileSystem], classOf[FileSystem])
    val path = new Path(s"put:$directory/0")
    val fs = path.getFileSystem(conf).asInstanceOf[PuttingFileSystem]
    fs.requests = 0
    fs.fault = NoFault
    fs.isConditional = true
    try body(new HadoopFiles(_ => conf), path, fs)
    finally fs.fault = NoFault
  }

  private def ask(files: HadoopFiles, header: String, payload: String = ""): Message =
    files.handle(Message("file", "", header, Message.NoBytes, payload.getBytes))

  private def write(
      files: HadoopFiles,
      path: Path,
      content: String,
      first: Boolean = true,
      last: Boolean = true,
      upload: String = "u",
      how: String = "conditional"): Message =
    ask(
      files,
      s"""{"operation": "write", "path": "$path", "first": $first, "last": $last, "exclusive": "$how",
         | "upload": "$upload"}""".stripMargin,
      content)

  private def read(fs: FileSystem, path: Path): String = {
    val in = fs.open(path)
    try new String(in.readAllBytes()) finally in.close()
  }

  test("a file system says what it is") {
    withFiles { (files, path, fs) =>
      for (isConditional <- Seq(true, false)) {
        fs.isConditional = isConditional
        val reply = ask(files, s"""{"operation": "file_system", "path": "$path"}""").json
        assert(reply.path("class").asText() == classOf[PuttingFileSystem].getName)
        assert(reply.path("conditional_create").asBoolean() == isConditional)
      }
    }
  }

  test("a file appears with its last part, by one request, and only once") {
    withFiles { (files, path, fs) =>
      assert(!write(files, path, "one", last = false, upload = "a").isError)
      assert(!write(files, path, "other", last = false, upload = "b").isError)
      assert(!fs.exists(path) && fs.requests == 0)
      assert(!write(files, path, "-two", first = false, upload = "a").isError)
      assert(read(fs, path) == "one-two" && fs.requests == 1)
      val lost = write(files, path, "-three", first = false, upload = "b")
      assert(lost.isError && lost.json.path("kind").asText() == "exists")
      assert(read(fs, path) == "one-two")
    }
  }

  test("a request that was repeated finds its own file, which is told as one that exists") {
    withFiles { (files, path, fs) =>
      fs.fault = LosesAnswer
      val lost = write(files, path, "one")
      assert(lost.isError && lost.json.path("kind").asText() == "exists" && read(fs, path) == "one")
    }
  }

  test("a request that was refused leaves nothing, and nor does a file without an end") {
    withFiles { (files, path, fs) =>
      fs.fault = Refuses
      val refused = write(files, path, "one")
      assert(refused.isError && refused.json.path("kind").asText() == "other")
      fs.fault = NoFault
      assert(!write(files, path, "one", last = false).isError)
      files.abandon()()
      assert(write(files, path, "-two", first = false).isError && !fs.exists(path))
    }
  }

  test("what cannot be created conditionally is not created at all") {
    withFiles { (files, path, fs) =>
      fs.isConditional = false
      assert(write(files, path, "one").isError && !fs.exists(path))
    }
  }
}
