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
package org.apache.spark.sql.ckpt.bridge

/** Figures of the side process, read at any time and without waiting. */
private[ckpt] trait SideProcessStatus {

  /** Process id of the running side process, for diagnosis. */
  def pid: Option[Long]

  /** Number of processes started after the first. */
  def restarts: Long

  /** Number of processes that were killed because they gave no sign of life. */
  def hung: Long

  /** Number of requests without an answer. */
  def openRequests: Int
}
