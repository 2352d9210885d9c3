// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.common

import java.util.concurrent._
import java.util.concurrent.TimeUnit.SECONDS
import java.util.concurrent.atomic.AtomicLong

import scala.concurrent.ExecutionContext

import org.apache.spark.internal.Logging
import org.apache.spark.memory.SparkOutOfMemoryError

/**
 * The threads that this project starts, and its actions on threads of Spark that serve others too. Whatever an action
 * throws ends here, in the log: an executor exits if an error of any thread reaches the JVM's handler. Only if the JVM
 * itself is broken does the error reach that handler.
 *
 * An action handles the errors that it expects itself. What arrives here is a defect; tests fail on it.
 */
private[ckpt] object OwnThreads extends Logging {

  /** Runs an action to its end or its error. */
  def guard(what: => String)(action: => Unit): Unit = try action catch { case e: Throwable => failed(what, e) }

  /** Logs the error of an action that has ended with it. */
  def failed(what: String, error: Throwable): Unit =
    try {
      if (error.isInstanceOf[InterruptedException]) Thread.currentThread().interrupt()
      logError(s"$what has failed: $error. This should not happen; please report it", error)
    } finally {
      if (isOfBrokenJvm(error)) {
        Option(Thread.getDefaultUncaughtExceptionHandler).foreach(_.uncaughtException(Thread.currentThread(), error))
      }
    }

  /** True if no thread of this JVM can be relied on after the error. */
  def isOfBrokenJvm(error: Throwable): Boolean = error match {
    case _: StackOverflowError | _: SparkOutOfMemoryError => false
    case _: VirtualMachineError => true
    case _ => false
  }

  /** Runs the callbacks of futures on the thread that completes these. */
  object WhereCompleted extends ExecutionContext {
    override def execute(callback: Runnable): Unit = guard("the callback of a future")(callback.run())

    override def reportFailure(error: Throwable): Unit = failed("the callback of a future", error)
  }

  /** A thread that does not keep the JVM alive, not started. */
  def daemon(name: String)(body: => Unit): Thread = {
    val thread = new Thread(() => guard(s"the thread $name")(body), name)
    thread.setDaemon(true)
    thread
  }

  /**
   * A pool of threads, which wait a minute for more work. The error of a submitted call is for the caller that asks
   * for its result.
   *
   * @param most number of threads; further actions wait
   */
  def pool(name: String, most: Int, keepAliveSeconds: Int = 60): ExecutorService = {
    val pool = new Pool(name, most, most, keepAliveSeconds, new LinkedBlockingQueue[Runnable])
    pool.allowCoreThreadTimeOut(true)
    pool
  }

  /** A pool in which no action waits for another. */
  def unboundedPool(name: String): ExecutorService =
    new Pool(name, 0, Int.MaxValue, 60, new SynchronousQueue[Runnable])

  /** One thread for later actions. */
  def timer(name: String): ScheduledExecutorService = {
    val timer = new Timer(name)
    timer.setRemoveOnCancelPolicy(true)
    timer
  }

  private final class Pool(
      name: String, least: Int, most: Int, keepAliveSeconds: Int, queue: BlockingQueue[Runnable])
      extends ThreadPoolExecutor(least, most, keepAliveSeconds, SECONDS, queue, new Threads(name)) {
    override def execute(action: Runnable): Unit = super.execute(guarded(action))
  }

  private final class Timer(name: String) extends ScheduledThreadPoolExecutor(1, new Threads(name)) {
    override def schedule(action: Runnable, delay: Long, unit: TimeUnit): ScheduledFuture[_] =
      super.schedule(guarded(action), delay, unit)
  }

  private def guarded(action: Runnable): Runnable = () => {
    guard(s"the thread ${Thread.currentThread().getName}")(action.run())
  }

  private final class Threads(name: String) extends ThreadFactory {
    private val number = new AtomicLong

    override def newThread(action: Runnable): Thread = {
      val thread = new Thread(action, s"$name-${number.getAndIncrement()}")
      thread.setDaemon(true)
      thread
    }
  }
}
