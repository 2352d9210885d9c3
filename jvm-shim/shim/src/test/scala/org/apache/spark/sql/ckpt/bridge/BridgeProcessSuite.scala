// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.bridge

import java.util.concurrent.{CountDownLatch, TimeUnit}

import scala.concurrent.duration.FiniteDuration
import scala.jdk.CollectionConverters._

import io.github.sparkckpt.uncaught.UncaughtErrorsReporter
import org.apache.hadoop.conf.Configuration
import org.scalatest.concurrent.Eventually._
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

import org.apache.spark.sql.ckpt.protocol.Message

class BridgeProcessSuite extends AnyFunSuite {
  private val large = Numbered(1, Message("large", "", "{}", Message.NoBytes, new Array[Byte](4 << 20)))

  private val hour = FiniteDuration(1, TimeUnit.HOURS)

  private def newSilence = new Silence(hour, hour, () => System.nanoTime())

  private def threads(role: String): Seq[Thread] =
    Thread.getAllStackTraces.keySet().asScala.toSeq.filter(_.getName == s"spark-ckpt-bridge-$role")

  test("a process that takes no more input ends its writer in silence") {
    val ended = new CountDownLatch(1)
    val uncaught = UncaughtErrorsReporter.expecting(_ => true) {
      val process = new BridgeProcess(
        Seq("sh", "-c", "exec 0<&-; echo ready >&2; exec sleep 3600"), newSilence, (_, _) => (),
        _ => ended.countDown())
      eventually(timeout(5.minutes))(assert(process.lastWords == "ready"))
      process.send(large)
      eventually(timeout(5.minutes))(assert(threads("writer").isEmpty))
      ProcessHandle.of(process.pid).get.destroyForcibly()
      assert(ended.await(5, TimeUnit.MINUTES))
      eventually(timeout(5.minutes))(assert(threads("reader").isEmpty && threads("log").isEmpty))
    }
    assert(uncaught.isEmpty, uncaught)
  }

  test("a process whose replies are no longer read is ended") {
    val ended = new CountDownLatch(1)
    // It returns what it gets, and does not end with its input.
    val process = new BridgeProcess(Seq("sh", "-c", "cat; exec sleep 3600"), newSilence,
      (_, _) => throw new IllegalStateException("not understood"), _ => ended.countDown())
    process.send(large)
    assert(ended.await(5, TimeUnit.MINUTES))
    eventually(timeout(5.minutes))(assert(!ProcessHandle.of(process.pid).filter(_.isAlive).isPresent))
  }

  test("a bridge that is closed starts no process") {
    val bridge = new PythonBridge("sh", "4", new HadoopFiles(_ => new Configuration()), hour, _ => ())
    bridge.close()
    bridge.warmUp()
    assert(bridge.pid.isEmpty)
  }

  test("the level of a line, in either format of the log") {
    for (level <- Seq("CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG")) {
      assert(BridgeProcess.levelOf(s"$level spark_ckpt.coordinator.job [orders, batch 7] a message") === level)
      assert(BridgeProcess.levelOf(s"""{"level": "$level", "message": "ERROR in a message"}""") === level)
    }
  }

  test("lines of other programs have no level of ours") {
    for (line <- Seq("", " ", "{", """{"level": """, "WARNINGS are here", "{\"level\": \"")) {
      assert(!Seq("CRITICAL", "ERROR", "WARNING", "DEBUG").contains(BridgeProcess.levelOf(line)), line)
    }
  }
}
