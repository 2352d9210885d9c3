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
package org.apache.spark.sql.ckpt.transfer

import org.apache.spark.sql.ckpt.bridge.HadoopFiles
import org.apache.spark.sql.ckpt.protocol.Message
import org.apache.spark.sql.classic.SparkSession

/** Hadoop's file systems of a session, for `spark_ckpt.migrate`, which calls them through Py4J. Thread-safe. */
final class SessionFiles(session: SparkSession) {
  private val files = new HadoopFiles(_ => session.sessionState.newHadoopConf())

  /**
   * The reply to a request (docs/protocol.md, section 1.6).
   *
   * @param header  JSON of the request
   * @param payload bytes to write
   */
  def ask(header: String, payload: Array[Byte]): Message =
    files.handle(Message(Message.File, "", header, payload = payload))
}
