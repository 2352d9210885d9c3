/*
 * Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
 * the License. You may obtain a copy of the License at
 *
 *    http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on
 * an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
 * specific language governing permissions and limitations under the License.
 */
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
