// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.uncaught

import scala.collection.mutable

import org.scalatest.Reporter
import org.scalatest.events._

/**
 * Fails the run of all suites of a JVM on an uncaught error in one of its threads, which ScalaTest itself does not see.
 * The build names this class to it.
 */
class UncaughtErrorsReporter extends Reporter {
  UncaughtErrorsReporter.begin()

  override def apply(event: Event): Unit = event match {
    case e: TestStarting => UncaughtErrorsReporter.test = s"${e.suiteName}: ${e.testName}"
    case _ =>
  }
}

object UncaughtErrorsReporter {
  private val found = mutable.ArrayBuffer.empty[String]
  private val expected = mutable.ArrayBuffer.empty[Throwable]
  private var isExpected: Throwable => Boolean = _ => false
  @volatile private var test = "before the first test"

  /** Once. */
  private lazy val begin: () => Unit = {
    UncaughtErrors.watch((thread, error) => add(thread, error))
    // ScalaTest has chosen the exit code by then.
    Runtime.getRuntime.addShutdownHook(new Thread(() => failIfFound()))
    () => ()
  }

  /**
   * What was uncaught while the body of a test runs, and the test expects: the error itself if it has reached the JVM,
   * an error with that cause if it was logged instead.
   */
  def expecting(which: Throwable => Boolean)(body: => Unit): Seq[Throwable] = {
    synchronized {
      begin()
      isExpected = which
      expected.clear()
    }
    try body finally synchronized { isExpected = _ => false }
    synchronized(expected.toSeq)
  }

  /** The error itself, whether it has reached the JVM or was logged. */
  private def cause(error: Throwable): Throwable = error match {
    case logged: AssertionError if logged.getCause != null => logged.getCause
    case other => other
  }

  private def add(thread: String, error: Throwable): Unit = synchronized {
    if (isExpected(cause(error))) expected += error
    else {
      found += s"in or before the test $test, thread ${UncaughtErrors.textOf(thread, error)}"
      System.err.println(s"*** UNCAUGHT ${found.last}")
    }
  }

  private def failIfFound(): Unit = synchronized {
    if (found.nonEmpty) {
      System.err.println(s"*** ${found.size} UNCAUGHT ERRORS: THE RUN HAS FAILED ***")
      found.foreach(each => System.err.println(s"*** $each"))
      Runtime.getRuntime.halt(1)
    }
  }
}
