// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

import java.lang.ref.Cleaner

import org.slf4j.LoggerFactory

/**
 * Actions for the time when nothing refers to an owner any more. What an action throws ends here, in the log, and is a
 * defect. Only if the JVM itself is broken does the error reach its handler.
 */
private[engine] object Cleanups {
  private val log = LoggerFactory.getLogger("io.github.sparkckpt.engine.Cleanups")
  private lazy val cleaner = Cleaner.create()

  /** Runs an action once nothing refers to the owner any more, unless it is run before. It must not refer to it. */
  def whenUnreachable(owner: AnyRef)(action: Runnable): Cleaner.Cleanable =
    cleaner.register(owner, () => try action.run() catch { case e: Throwable => failed(e) })

  private def failed(error: Throwable): Unit =
    try {
      if (error.isInstanceOf[InterruptedException]) Thread.currentThread().interrupt()
      log.error(s"a cleanup has failed: $error. This should not happen; please report it", error)
    } finally {
      if (error.isInstanceOf[VirtualMachineError] && !error.isInstanceOf[StackOverflowError]) {
        Option(Thread.getDefaultUncaughtExceptionHandler).foreach(_.uncaughtException(Thread.currentThread(), error))
      }
    }
}
