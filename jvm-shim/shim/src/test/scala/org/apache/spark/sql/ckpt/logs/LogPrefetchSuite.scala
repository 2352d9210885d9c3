// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.logs

import java.io.EOFException
import java.nio.file.{Files, Paths}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.{CheckpointLogFileManager, PuttingFileSystem}
import org.apache.spark.util.Utils

/** Reads of a manager whose storage is a folder; the folder is changed underneath to see who answers. */
class LogPrefetchSuite extends AnyFunSuite {

  private class Location(scheme: String) {
    private val directory = Utils.createTempDir(namePrefix = "logs").toPath
    private val conf = new Configuration()
    conf.setClass("fs.put.impl", classOf[PuttingFileSystem], classOf[FileSystem])
    val path = new Path(s"$scheme:$directory")
    lazy val manager = new CheckpointLogFileManager(path, conf)

    def write(name: String, text: String): Unit = {
      Files.createDirectories(Paths.get(directory.toString, name).getParent)
      Files.writeString(Paths.get(directory.toString, name), text)
    }

    def remove(name: String): Unit = Files.delete(Paths.get(directory.toString, name))

    def start(): Unit = manager.createCheckpointDirectory()

    def file(name: String): Path = new Path(path, name)

    def read(name: String): String = {
      val in = manager.open(file(name))
      try new String(in.readAllBytes()) finally in.close()
    }

    def names(name: String): Seq[String] = manager.list(file(name), _ => true).toSeq.map(_.getPath.getName)

    def put(name: String, text: String): Unit = {
      val out = manager.createAtomic(file(name), overwriteIfPossible = false)
      out.write(text.getBytes)
      out.close()
    }
  }

  private def withLocation(scheme: String = "put")(body: Location => Unit): Unit = {
    val location = new Location(scheme)
    Seq("metadata", "offsets/0", "offsets/1", "commits/0", "sources/0/0", "state/0/_metadata/metadata",
      "state/0/0/_metadata/schema").foreach(name => location.write(name, s"first $name"))
    location.start()
    try body(location) finally LogPrefetch.end(location.path)
  }

  /** Waits for the reads, so that a change of the folder comes after them. */
  private def prefetched(location: Location): Unit =
    Seq("metadata", "offsets/1", "sources/0/0", "state/0/0/_metadata/schema").foreach { name =>
      assert(location.read(name) == s"first $name")
    }

  test("a starting query reads its logs as they were at its start, without further requests") {
    withLocation() { location =>
      prefetched(location)
      location.write("offsets/1", "second")
      location.remove("metadata")
      location.write("offsets/2", "of another driver")
      assert(location.read("offsets/1") == "first offsets/1" && location.read("metadata") == "first metadata")
      assert(location.manager.exists(location.file("offsets")) && location.manager.exists(location.file("offsets/1")))
      assert(!location.manager.exists(location.file("offsets/2")))
      assert(location.names("offsets") == Seq("0", "1") && location.names("state") == Seq("0"))
    }
  }

  test("the second version of an operator's metadata is asked for ahead") {
    withLocation() { location =>
      prefetched(location)
      val second = location.file("state/0/_metadata/v2")
      assert(!location.manager.exists(second))
      location.write("state/0/_metadata/v2/0", "of another driver")
      assert(!location.manager.exists(second))
      location.manager.mkdirs(second)
      assert(location.manager.exists(second))
    }
  }

  test("an entry of another driver is noticed when this one writes it") {
    withLocation() { location =>
      prefetched(location)
      location.write("offsets/2", "of another driver")
      intercept[java.io.IOException](location.put("offsets/2", "ours"))
      assert(location.read("offsets/2") == "of another driver")
      assert(location.names("offsets").sorted == Seq("0", "1", "2"))
    }
  }

  test("changes of this driver are seen") {
    withLocation() { location =>
      prefetched(location)
      location.put("offsets/2", "ours")
      assert(location.manager.exists(location.file("offsets/2")) && location.read("offsets/2") == "ours")
      assert(location.names("offsets").sorted == Seq("0", "1", "2"))
      location.manager.delete(location.file("offsets/1"))
      assert(!location.manager.exists(location.file("offsets/1")))
      location.manager.mkdirs(location.file("state/1"))
      assert(location.names("state").sorted == Seq("0", "1"))
      assert(location.read("sources/0/0") == "first sources/0/0")
    }
  }

  test("the first commit ends it") {
    withLocation() { location =>
      prefetched(location)
      location.put("commits/1", "{}")
      location.write("offsets/1", "second")
      assert(location.read("offsets/1") == "second" && LogPrefetch.of(location.file("offsets/1")).isEmpty)
    }
  }

  test("a second start reads again") {
    withLocation() { location =>
      prefetched(location)
      location.write("offsets/1", "second")
      location.start()
      assert(location.read("offsets/1") == "second")
    }
  }

  test("a new location has nothing to read ahead") {
    val location = new Location("put")
    location.start()
    try {
      assert(!location.manager.exists(location.file("offsets")))
      location.manager.mkdirs(location.file("offsets"))
      assert(location.manager.exists(location.file("offsets")) && location.names("offsets").isEmpty)
      location.put("offsets/0", "ours")
      assert(location.names("offsets") == Seq("0"))
    } finally LogPrefetch.end(location.path)
  }

  test("nothing is read ahead on a local disk") {
    withLocation("file")(location => assert(LogPrefetch.of(location.file("offsets/0")).isEmpty))
  }

  test("files of other locations are not affected") {
    withLocation() { location =>
      assert(LogPrefetch.of(new Path("put:/elsewhere/offsets/0")).isEmpty)
      assert(LogPrefetch.of(location.path.getParent).isEmpty)
    }
  }

  test("an input can be read at any position") {
    withLocation() { location =>
      val in = location.manager.open(location.file("metadata"))
      in.seek(6)
      assert(new String(in.readAllBytes()) == "metadata" && in.getPos == 14)
      in.readFully(0, new Array[Byte](5))
      intercept[EOFException](in.seek(15))
      in.close()
    }
  }
}
