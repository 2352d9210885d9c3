// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.common

import java.util.concurrent.{Callable, ExecutionException, TimeUnit}

import scala.concurrent.Promise
import scala.util.control.ControlThrowable

import io.github.sparkckpt.uncaught.UncaughtErrorsReporter
import org.scalatest.funsuite.AnyFunSuite

class OwnThreadsSuite extends AnyFunSuite {
  private def errors: Seq[Throwable] = Seq(new IllegalStateException("a defect"), new LinkageError("a class"),
    new InterruptedException("by a library"), new StackOverflowError, new ControlThrowable("a jump") {})

  /** Asserts that these errors, and no others, are logged and reach the JVM's handler only if the JVM is broken. */
  private def assertLogged(errors: Throwable*)(body: => Unit): Unit = {
    val uncaught = UncaughtErrorsReporter.expecting(error => errors.exists(_ eq error))(body)
    errors.foreach { error =>
      assert(uncaught.exists(_.getCause eq error), error)
      assert(uncaught.exists(_ eq error) == error.isInstanceOf[OutOfMemoryError], error)
    }
  }

  test("an action's error ends in the log, and its pool continues") {
    for (pool <- Seq(OwnThreads.pool("spark-ckpt-test", most = 1), OwnThreads.unboundedPool("spark-ckpt-test"))) {
      val all = errors
      assertLogged(all: _*) {
        all.foreach(error => pool.execute(() => throw error))
        assert(pool.submit((() => 1): Callable[Int]).get() == 1)
        pool.shutdown()
        assert(pool.awaitTermination(5, TimeUnit.MINUTES))
      }
    }
  }

  test("an error of the JVM reaches its handler") {
    val error = new OutOfMemoryError("heap")
    assertLogged(error)(OwnThreads.guard("a test")(throw error))
  }

  test("the error of a submitted call is thrown to the caller of its future") {
    val pool = OwnThreads.pool("spark-ckpt-test", most = 1)
    try {
      val error = new LinkageError("a class")
      val call = pool.submit((() => throw error): Callable[Int])
      assert(intercept[ExecutionException](call.get()).getCause eq error)
    } finally pool.shutdown()
  }

  test("a timer, a thread, the callback of a future and a cleanup end in the log too") {
    val error = new LinkageError("a class")
    val timer = OwnThreads.timer("spark-ckpt-test")
    try assertLogged(error) {
      timer.schedule((() => throw error): Runnable, 1, TimeUnit.MILLISECONDS)
      assert(timer.submit((() => 1): Callable[Int]).get() == 1)
      timer.shutdown()
      assert(timer.awaitTermination(5, TimeUnit.MINUTES))
    } finally timer.shutdown()
    assertLogged(error) {
      val thread = OwnThreads.daemon("spark-ckpt-test")(throw error)
      thread.start()
      thread.join()
    }
    for (error <- Seq(new IllegalStateException("a defect"), new LinkageError("a class"))) assertLogged(error) {
      val promise = Promise[Int]()
      promise.future.foreach(_ => throw error)(OwnThreads.WhereCompleted)
      promise.success(1)
    }
  }

  test("a thread of others knows afterwards that it was interrupted") {
    val error = new InterruptedException("a kill")
    @volatile var wasInterrupted = false
    assertLogged(error) {
      val thread = new Thread(() => {
        OwnThreads.guard("a test")(throw error)
        wasInterrupted = Thread.interrupted()
      })
      thread.start()
      thread.join()
    }
    assert(wasInterrupted)
  }
}
