// SPDX-License-Identifier: Apache-2.0
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
