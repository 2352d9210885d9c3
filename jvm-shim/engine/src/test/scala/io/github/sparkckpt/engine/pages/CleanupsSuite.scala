// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

import java.util.concurrent.atomic.AtomicInteger

import io.github.sparkckpt.uncaught.UncaughtErrorsReporter
import org.scalatest.funsuite.AnyFunSuite

class CleanupsSuite extends AnyFunSuite {
  test("an action runs once") {
    val runs = new AtomicInteger
    val cleanable = Cleanups.whenUnreachable(new Object)(() => runs.incrementAndGet())
    cleanable.clean()
    cleanable.clean()
    assert(runs.get == 1)
  }

  for (error <- Seq(new IllegalStateException("a defect"), new LinkageError("a class"), new StackOverflowError,
      new OutOfMemoryError("no room"))) {
    test(s"an error is logged, and reaches the JVM's handler only if the JVM is broken: ${error.getClass}") {
      val uncaught = UncaughtErrorsReporter.expecting(_ eq error) {
        Cleanups.whenUnreachable(new Object)(() => throw error).clean()
      }
      assert(uncaught.exists(_.getCause eq error))
      assert(uncaught.exists(_ eq error) == error.isInstanceOf[OutOfMemoryError])
    }
  }

  test("a thread that runs an action knows afterwards that it was interrupted") {
    val error = new InterruptedException("a kill")
    UncaughtErrorsReporter.expecting(_ eq error) {
      Cleanups.whenUnreachable(new Object)(() => throw error).clean()
    }
    assert(Thread.interrupted())
  }
}
