// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.sparksuites

import java.io.{FileWriter, PrintWriter}

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import io.github.sparkckpt.uncaught.UncaughtErrors
import org.scalatest.Reporter
import org.scalatest.events._

/**
 * Writes what happens in a run to the file `suites.events`, one JSON object a line, each flushed at once: a JVM that is
 * killed leaves what it has done. Uncaught errors of our threads are among it.
 */
class EventReporter extends Reporter {
  import EventReporter._

  private val out = new PrintWriter(new FileWriter(System.getProperty("suites.events")), true)
  private var builtBefore = 0L
  @volatile private var suite = ""

  UncaughtErrors.watch((thread, error) =>
    write("uncaught", suite)(_.put("error", UncaughtErrors.textOf(thread, error).take(MaxText))))

  override def apply(event: Event): Unit = event match {
    case e: SuiteStarting =>
      suite = e.suiteId
      write("suite started", e.suiteId)(_ => ())
    case e: TestStarting =>
      builtBefore = Providers.built()
      write("test started", e.suiteId)(_.put("test", e.testName))
    case e: TestSucceeded => ended(e.suiteId, e.testName, "passed", e.duration)
    case e: TestFailed => ended(e.suiteId, e.testName, "failed", e.duration, describe(e.message, e.throwable))
    case e: TestCanceled => ended(e.suiteId, e.testName, "cancelled", e.duration, describe(e.message, e.throwable))
    case e: TestIgnored => ended(e.suiteId, e.testName, "ignored", None)
    case e: SuiteCompleted => write("suite completed", e.suiteId)(_.put("seconds", seconds(e.duration)))
    case e: SuiteAborted => write("suite aborted", e.suiteId)(_.put("error", describe(e.message, e.throwable)))
    case e: RunAborted => write("run aborted", "")(_.put("error", describe(e.message, e.throwable)))
    case _ =>
  }

  private def ended(
      suite: String, test: String, outcome: String, duration: Option[Long], error: String = ""): Unit =
    write("test ended", suite) { line =>
      line.put("test", test).put("outcome", outcome).put("seconds", seconds(duration)).put("error", error)
      line.put("providers", if (outcome == "ignored") 0 else Providers.built() - builtBefore)
    }

  private def write(event: String, suite: String)(fill: ObjectNode => Unit): Unit = synchronized {
    val line = Json.createObjectNode().put("event", event).put("suite", suite)
    fill(line)
    out.println(line)
  }
}

private object EventReporter {
  private val Json = new ObjectMapper
  private val MaxText = 1500
  private val Causes = 4
  private val Frames = 6

  private def seconds(milliseconds: Option[Long]): Double = milliseconds.getOrElse(0L) / 1000.0

  /** The message, the causes, and where in Spark it happened. */
  private def describe(message: String, thrown: Option[Throwable]): String = {
    val causes = Iterator.iterate(thrown.flatMap(cause))(_.flatMap(cause)).takeWhile(_.isDefined).flatten.take(Causes)
    val frames = thrown.toSeq.flatMap(_.getStackTrace).map(_.toString).filter(_.startsWith("org.apache.spark"))
    (Seq(message.take(MaxText)) ++ causes.map(c => s"caused by ${c.toString.take(MaxText)}") ++
      frames.take(Frames).map("  at " + _)).mkString("\n")
  }

  private def cause(thrown: Throwable): Option[Throwable] = Option(thrown.getCause)
}
