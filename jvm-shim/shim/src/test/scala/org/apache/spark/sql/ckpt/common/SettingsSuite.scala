// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.common

import scala.concurrent.duration._
import scala.io.{Codec, Source}

import io.github.sparkckpt.engine.segment.BlockCodec
import org.scalatest.funsuite.AnyFunSuite

class SettingsSuite extends AnyFunSuite {
  private def ack(text: String) = Settings.ackThreshold(Map(Settings.AckThreshold -> text))
  private def timeout(text: String) = Settings.bridgeTimeout(Map(Settings.BridgeTimeout -> text))

  test("a text has the value that the table of both languages says") {
    val table = Source.fromResource("setting-values.tsv")(Codec.UTF8)
    val examples = try table.getLines().filterNot(_.startsWith("#")).map(_.split("\t", -1)).toSeq finally table.close()
    assert(examples.size > 50)
    examples.foreach { case Array(kind, text, value) =>
      val parsed = kind match {
        case "duration" => Units.milliseconds(text)
        case "size" => Units.bytes(text)
        case "share" => Units.percent(text)
      }
      assert(parsed == (if (value == "-") None else Some(BigInt(value))), s"$kind '$text'")
    }
  }

  test("memory for state is a size, a share of the heap, or unlimited") {
    def budget(text: String) = Settings.memoryBudget(Map(Settings.MemoryBudget -> text), heap = 1000)
    assert(budget("4GiB").contains(4L << 30) && budget("1").contains(1))
    assert(budget("1%").contains(10) && budget(" 90% ").contains(900))
    assert(budget("None").isEmpty)
    assert(Settings.memoryBudget(Map.empty, heap = 1000).contains(400))
    assert(Settings.memoryBudget(Map.empty).contains(Runtime.getRuntime.maxMemory * 40 / 100))
    for (text <- Seq("0", "-1", "half", "", "0%", "91%", "1.5%", "40 %", "%")) {
      assert(intercept[CheckpointFailure](budget(text)).getMessage.contains(Settings.MemoryBudget))
    }
  }

  test("a codec has a name") {
    def codec(text: String) = Settings.compression(Map(Settings.Compression -> text))
    assert(BlockCodec.All.map(codec => codec.name) == Seq("none", "lz4", "zstd"))
    assert(codec("none") == BlockCodec.Uncompressed && codec(" LZ4 ") == BlockCodec.Lz4)
    assert(codec("zstd") == BlockCodec.Zstandard)
    assert(Settings.compression(Map.empty) == BlockCodec.Lz4)
    assert(intercept[CheckpointFailure](codec("gzip")).getMessage.contains("none, lz4, zstd"))
  }

  test("settings have units, and defaults") {
    assert(ack("64KiB") == 65536)
    assert(ack(" 0 ") == 0)
    assert(Settings.ackThreshold(Map.empty) == 1048576)
    assert(timeout("300.0") == 300.seconds)
    assert(timeout("250ms") == 250.millis)
    assert(timeout("5m") == 5.minutes)
    assert(Settings.bridgeTimeout(Map.empty) == 300.seconds)
  }

  test("a value that cannot be names its key") {
    Seq("-1", "many", "1.5", "", "999999999999999999g").foreach { text =>
      val failure = intercept[CheckpointFailure](ack(text))
      assert(failure.error == "SettingError")
      assert(failure.reason.startsWith(s"${Settings.AckThreshold}: '$text'"))
    }
    Seq("0", "0.0001", "-3", "366d", "soon").foreach { text =>
      val failure = intercept[CheckpointFailure](timeout(text))
      assert(failure.error == "SettingError")
      assert(failure.reason.startsWith(s"${Settings.BridgeTimeout}: '$text'"))
    }
  }
}
