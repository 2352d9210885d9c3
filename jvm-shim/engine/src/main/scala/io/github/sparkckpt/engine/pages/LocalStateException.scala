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

/**
 * Evicted state that cannot be written to a local disk or read from it. Checkpoints are untouched: the state is loaded
 * again from them.
 *
 * @param file  path of the local file
 * @param what  description of the error
 * @param cause underlying error, or null
 */
final class LocalStateException(val file: String, val what: String, cause: Throwable)
  extends RuntimeException(
    s"State on the local disk is lost, in $file: $what. Spark retries the task, which loads the state again from its " +
      "checkpoint. Check the disk, its free space, and what else deletes files there",
    cause) {

  def this(file: String, what: String) = this(file, what, null)
}
