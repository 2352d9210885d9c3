// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.common

import java.util.concurrent.{Callable, CompletableFuture, ExecutionException, Future}

import scala.util.{Failure, Success, Try}

/** Requests to a storage that run on threads of their own, beside their caller. */
private[ckpt] object BackgroundRequests {
  private val MaxThreads = 32
  private val KeepAliveSeconds = 5

  private lazy val pool = OwnThreads.pool("spark-ckpt-requests", MaxThreads, KeepAliveSeconds)

  /** A request that begins now. */
  final class Request[T] private[BackgroundRequests] (running: Future[T]) {

    /** Its result, or its exception. */
    def outcome(): Try[T] =
      try Success(running.get())
      catch { case e: ExecutionException => Failure(e.getCause) }

    /** Its result; throws its exception. */
    def result(): T = outcome().get
  }

  /** Begins a request. */
  def begin[T](request: => T): Request[T] = {
    val call: Callable[T] = () => request
    new Request(pool.submit(call))
  }

  /** Begins a request, or makes it here and now where requests are quick. */
  def beginIf[T](slow: Boolean)(request: => T): Request[T] =
    if (slow) begin(request) else new Request(CompletableFuture.completedFuture(request))
}
