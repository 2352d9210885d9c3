// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import java.io.{EOFException, FileNotFoundException, InterruptedIOException, IOException}
import java.net.SocketTimeoutException
import java.nio.channels.ClosedByInterruptException
import java.nio.file.NoSuchFileException

import io.github.sparkckpt.engine.segment.StateStreamDamagedException

import org.apache.spark.sql.ckpt.common.{CheckpointFailure, EntryPoints}
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.streaming.state.StateStoreId

/** Translation of load errors: only a damaged or missing file must be restored. */
private[ckpt] object LoadFailures {

  /** True if [[of]] can translate the error. */
  def isKnown(cause: Throwable): Boolean = cause match {
    case _: IOException | _: StateStreamDamagedException | _: InterruptedException => true
    case _ => false
  }

  /**
   * The error to throw. After an interruption the thread's flag is set again.
   *
   * @param what  version of a store that was being loaded
   * @param where location of its files
   */
  def of(what: String, where: String, cause: Throwable): CheckpointFailure =
    if (isInterruption(cause)) {
      Thread.currentThread().interrupt()
      new CheckpointFailure("StateReadInterruptedError", s"loading $what was interrupted: its task was killed", cause)
    } else cause match {
      case _: StateStreamDamagedException | _: EOFException => damaged(s"$what is damaged in $where", cause)
      case _: FileNotFoundException | _: NoSuchFileException => damaged(s"$what lacks a file in $where", cause)
      case _ =>
        new CheckpointFailure("StateReadError",
          s"$what cannot be read now from $where: $cause. The storage failed; the file may be intact. " +
            "Spark retries the task; if that fails too, check the storage", cause)
    }

  def outOfMemory(id: StateStoreId, cause: OutOfMemoryError): Throwable =
    QueryExecutionErrors.notEnoughMemoryToLoadStore(
      id.toString, EntryPoints.Provider.split('.').last, cause)

  private def damaged(what: String, cause: Throwable): CheckpointFailure = new CheckpointFailure("StateFileError",
    s"$what: ${cause.getMessage}. " +
      "Restore the file, or go back to an older checkpoint ('spark-ckpt list' lists them)", cause)

  /** Network timeouts are subclasses of `InterruptedIOException` too. */
  private def isInterruption(cause: Throwable): Boolean =
    CheckpointFailure.causesOf(cause).exists {
      case _: SocketTimeoutException => false
      case e: InterruptedIOException => e.getClass == classOf[InterruptedIOException]
      case _: InterruptedException | _: ClosedByInterruptException => true
      case _ => false
    }
}
