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
