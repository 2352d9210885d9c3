// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.logs

import org.apache.hadoop.fs.{FileStatus, Path}
import org.scalatest.funsuite.AnyFunSuite

class LogListingSuite extends AnyFunSuite {
  private val location = new Path("put:/x")

  private def listing(part: String, isLog: Boolean, names: String*): LogListing = {
    val root = new Path(location, part)
    new LogListing(root, names.map(name => new FileStatus(1, false, 1, 1, 0, new Path(root, name))), isLog)
  }

  private def names(files: Seq[FileStatus]): Seq[String] = files.map(_.getPath.toString.stripPrefix(s"$location/"))

  test("of a log Spark reads the latest two entries, in the order of their numbers") {
    assert(names(listing("offsets", isLog = true, "10", "8", "9").readAtStart) == Seq("offsets/9", "offsets/10"))
    assert(names(listing("offsets", isLog = true, "0").readAtStart) == Seq("offsets/0"))
  }

  test("of each log of files Spark reads the latest compacted entry and all after it") {
    val files = listing("sources", isLog = true, "0/9.compact", "0/10", "0/19.compact", "0/20", "0/21", "0/22", "1/0")
    assert(names(files.readAtStart).sorted ==
      Seq("sources/0/19.compact", "sources/0/20", "sources/0/21", "sources/0/22", "sources/1/0"))
  }

  test("of a source without a compacted entry Spark reads all entries") {
    val files = listing("sources", isLog = true, "0/0", "0/1", "0/2", "0/10", "1/0")
    assert(names(files.readAtStart).sorted ==
      Seq("sources/0/0", "sources/0/1", "sources/0/10", "sources/0/2", "sources/1/0"))
  }

  test("Spark asks for the second version of the metadata of operators") {
    val files = listing("state", isLog = false, "0/_metadata/metadata", "0/0/_metadata/schema", "1/_metadata/metadata",
      "1/_metadata/v2/3", "2/0/_metadata/schema")
    assert(files.askedAtStart == Seq(new Path(location, "state/0/_metadata/v2")))
    assert(listing("sources", isLog = true, "0/0").askedAtStart.isEmpty)
  }

  test("of the state Spark reads schemas and metadata, not the state files of a provider") {
    val files = listing("state", isLog = false, "0/0/_metadata/schema", "0/0/1.delta", "0/_metadata/metadata",
      "0/_stateSchema/default/0_6a", "0/_metadata/v2/3", "0/_metadata/v2/4", "0/_metadata/v2/5", "0/1/7.zip")
    assert(names(files.readAtStart).sorted ==
      Seq("state/0/0/_metadata/schema", "state/0/_metadata/metadata", "state/0/_metadata/v2/4",
        "state/0/_metadata/v2/5", "state/0/_stateSchema/default/0_6a"))
  }

  test("a single file is its own listing") {
    val metadata = new Path(location, "metadata")
    val files = new LogListing(metadata, Seq(new FileStatus(1, false, 1, 1, 0, metadata)), isLog = true)
    assert(files.status(metadata).flatten.exists(_.isFile) && names(files.readAtStart) == Seq("metadata"))
  }

  private def ofSizes(part: String, sizes: (String, Long)*): LogListing = {
    val root = new Path(location, part)
    val files = sizes.map { case (name, size) => new FileStatus(size, false, 1, 1, 0, new Path(root, name)) }
    new LogListing(root, files, isLog = true)
  }

  test("large files are left to Spark") {
    assert(ofSizes("sources", "0/9.compact" -> (1L << 30)).readAtStart.isEmpty)
    assert(ofSizes("sources", "0/0" -> (1L << 20), "1/0" -> 100).readAtStart.map(_.getLen) == Seq(100))
    assert(ofSizes("offsets", "0" -> (1L << 20), "1" -> 100).readAtStart.map(_.getLen) == Seq(1L << 20, 100))
  }

  test("many small files take little memory together") {
    val files = ofSizes("sources", (0 until 1000).map(i => s"$i/0" -> (60L << 10)): _*).readAtStart
    assert(files.size > 100 && files.map(_.getLen).sum <= (8L << 20))
  }

  test("a log with entries tells which entries there are not") {
    val files = listing("offsets", isLog = true, "0", "1")
    assert(files.status(new Path(location, "offsets/1")).flatten.exists(_.isFile))
    assert(files.status(new Path(location, "offsets/2")).contains(None))
    assert(files.status(new Path(location, "offsets")).flatten.exists(_.isDirectory))
  }

  test("nothing is known about directories without files") {
    assert(listing("offsets", isLog = true).status(new Path(location, "offsets")).isEmpty)
    assert(listing("offsets", isLog = true).status(new Path(location, "offsets/0")).isEmpty)
    val state = listing("state", isLog = false, "0/0/_metadata/schema")
    assert(state.status(new Path(location, "state/1")).isEmpty)
    assert(state.status(new Path(location, "state/0/_metadata")).isEmpty)
    assert(state.children(new Path(location, "state/1")).isEmpty)
  }

  test("a directory has its files and directories") {
    val state = listing("state", isLog = false, "0/0/_metadata/schema", "0/_metadata/metadata", "1/_metadata/metadata")
    assert(state.children(new Path(location, "state")).map(names).contains(Seq("state/0", "state/1")))
    assert(state.children(new Path(location, "state/0")).map(names).contains(Seq("state/0/0", "state/0/_metadata")))
  }
}
