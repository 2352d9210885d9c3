// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.locate

import java.nio.file.Files

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.files.StateFiles
import org.apache.spark.sql.ckpt.protocol.Message
import org.apache.spark.util.Utils

/** Rules that tests/completed/test_void.py states for Python. */
class DirectoryLocatorSuite extends AnyFunSuite {

  private def checkpoint(id: Int, generation: Int) = s"""{"kind": "checkpoint", "id": $id, "generation": $generation}"""

  private def claim(id: Int, generation: Int, seen: Option[Seq[Int]] = None) =
    s"""{"kind": "claim", "id": $id, "generation": $generation${seen.fold("")(seenField)}}"""

  private def seenField(ids: Seq[Int]): String = ids.mkString(", \"seen\": [", ", ", "]")

  private def kept(records: String*): Seq[Long] =
    DirectoryLocator.withoutVoid(records.reverse.map(Message.mapper.readTree(_))).map(_.path("id").asLong()).reverse

  test("a log without claims, or whose claims have seen all below them, counts in full") {
    assert(kept(checkpoint(4, 1), checkpoint(5, 1)) == Seq(4, 5))
    val seen = claim(4, 2, Some(Seq(1, 3)))
    assert(kept(claim(1, 1, Some(Nil)), checkpoint(3, 1), seen, checkpoint(5, 2)) == Seq(1, 3, 4, 5))
    assert(kept(claim(1, 1), checkpoint(3, 1), claim(4, 2), checkpoint(5, 2)) == Seq(1, 3, 4, 5))
  }

  test("what the newest claim has not seen below it does not count") {
    assert(kept(checkpoint(2, 1), claim(3, 2), checkpoint(8, 8), claim(9, 9, Some(Seq(3, 8))), checkpoint(10, 9)) ==
      Seq(3, 8, 9, 10))
  }

  test("what an earlier claim has not seen counts if a later one has") {
    assert(kept(claim(3, 2, Some(Nil)), checkpoint(4, 2), claim(5, 3, Some(Seq(3, 4)))) == Seq(3, 4, 5))
  }

  test("a claim that an earlier generation follows does not count, nor what it has seen") {
    assert(kept(claim(1, 1, Some(Nil)), claim(2, 2, Some(Seq(1))), checkpoint(3, 1)) == Seq(1, 3))
  }

  test("a directory whose number exceeds 64 bits is not a checkpoint") {
    val location = Utils.createTempDir(namePrefix = "directories").toPath
    val files = new StateFiles(new Path(location.toUri), new Configuration())
    Seq("chk-9223372036854775808", "chk-1-99999999999999999999")
      .foreach(name => Files.createDirectory(location.resolve(name)))
    assert(!DirectoryLocator.hasCheckpoints(files))
    Files.createDirectory(location.resolve("chk-9223372036854775807"))
    assert(DirectoryLocator.hasCheckpoints(files))
  }
}
