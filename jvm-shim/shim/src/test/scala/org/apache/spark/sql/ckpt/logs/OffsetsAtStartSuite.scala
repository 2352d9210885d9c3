// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.logs

import java.nio.charset.StandardCharsets.UTF_8

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.common.EntryPoints

class OffsetsAtStartSuite extends AnyFunSuite {
  private def entry(number: Option[Int], time: Long, provider: String = EntryPoints.Provider): String = {
    val partitions = number.fold("")(n => s""","spark.sql.shuffle.partitions":"$n"""")
    val conf = s"""{"spark.sql.streaming.stateStore.providerClass":"$provider"$partitions}"""
    s"""v1\n{"batchWatermarkMs":0,"batchTimestampMs":$time,"conf":$conf}\n{"logOffset":$time}\n-"""
  }

  private def read(entries: (Long, String)*): Seq[String] = {
    val offsets = new OffsetsAtStart
    entries.map { case (batchId, text) => new String(offsets.content(batchId, text.getBytes(UTF_8)), UTF_8) }
  }

  private def unchanged(entries: (Long, String)*): Unit = assert(read(entries: _*) == entries.map(_._2))

  test("the entry before a rescale has the number of the one after it") {
    for (before <- Seq(Some(4), None)) {
      val Seq(newest, earlier) = read(5L -> entry(Some(8), 50), 4L -> entry(before, 40))
      assert(newest == entry(Some(8), 50) && earlier == entry(Some(8), 40))
    }
  }

  test("all other entries are as they are in the log") {
    unchanged(5L -> entry(Some(8), 50), 4L -> entry(Some(8), 40))
    unchanged(5L -> entry(Some(8), 50), 3L -> entry(Some(4), 30))
    unchanged(4L -> entry(Some(4), 40), 5L -> entry(Some(8), 50))
    unchanged(5L -> entry(None, 50), 4L -> entry(Some(4), 40))
  }

  test("a repartition that was interrupted is left alone, and another state store") {
    unchanged(5L -> entry(Some(8), 40), 4L -> entry(Some(4), 40))
    unchanged(5L -> entry(Some(8), 50, "other"), 4L -> entry(Some(4), 40, "other"))
  }

  test("what is no entry is left to Spark") {
    for (text <- Seq("", "v1", "v1\n", "v1\n[1]", "v1\n{\"conf\":3}\n-", "v1\n{")) {
      unchanged(5L -> text, 4L -> entry(Some(4), 40))
      unchanged(5L -> entry(Some(8), 50), 4L -> text.replace("{\"conf\":3}", "[]"))
    }
  }
}
