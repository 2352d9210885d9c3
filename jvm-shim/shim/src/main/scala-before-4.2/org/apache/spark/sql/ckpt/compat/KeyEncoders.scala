// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.execution.streaming.state.KeyStateEncoderSpec

private[ckpt] object KeyEncoders {

  /** Encoders that add a timestamp to the operator's key exist since Spark 4.2. */
  def addsTimestamp(encoder: KeyStateEncoderSpec): Boolean = false
}
