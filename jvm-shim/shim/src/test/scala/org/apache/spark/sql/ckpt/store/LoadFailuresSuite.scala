// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import java.io.{EOFException, FileNotFoundException, InterruptedIOException, IOException}
import java.net.SocketTimeoutException
import java.nio.channels.ClosedByInterruptException

import io.github.sparkckpt.engine.segment.StateStreamDamagedException
import org.scalatest.funsuite.AnyFunSuite

class LoadFailuresSuite extends AnyFunSuite {
  private def of(cause: Throwable) = LoadFailures.of("version 3 of a store", "s3a://bucket/ckpt", cause)

  test("a damaged or missing file is to be restored") {
    val causes = Seq(
      new StateStreamDamagedException("f", 3, "a bad block"),
      new EOFException("too short"),
      new FileNotFoundException("f"))
    causes.foreach { cause =>
      val failure = of(cause)
      assert(failure.error == "StateFileError" && failure.reason.contains("Restore the file"))
      assert(failure.reason.contains(cause.getMessage) && failure.reason.contains("version 3 of a store"))
      assert(failure.getCause eq cause)
    }
  }

  test("storage that fails is no reason to restore anything") {
    val causes = Seq(
      new IOException("503 Slow Down"), new SocketTimeoutException("read timed out"),
      new IOException("read failed", new SocketTimeoutException("read timed out")))
    causes.foreach { cause =>
      val failure = of(cause)
      assert(failure.error == "StateReadError" && !failure.reason.contains("Restore the file"))
      assert(failure.reason.contains(cause.getMessage) && failure.reason.contains("s3a://bucket/ckpt"))
      assert(!Thread.currentThread().isInterrupted)
    }
  }

  test("an interruption is one, and the thread stays interrupted") {
    val causes = Seq(
      new InterruptedException, new InterruptedIOException("lock"), new ClosedByInterruptException,
      new IOException("read failed", new InterruptedException))
    causes.foreach { cause =>
      assert(LoadFailures.isKnown(cause))
      val failure = of(cause)
      assert(Thread.interrupted(), "the flag is lost")
      assert(failure.error == "StateReadInterruptedError" && !failure.reason.contains("Restore"))
    }
  }

  test("a failed assertion or a lack of memory is none of these") {
    assert(!LoadFailures.isKnown(new OutOfMemoryError) && !LoadFailures.isKnown(new IllegalStateException))
  }
}
