// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.execution.streaming.state._

private[ckpt] object KeyEncoders {

  /** True if the stored key is the operator's key with a timestamp as its last column. */
  def addsTimestamp(encoder: KeyStateEncoderSpec): Boolean = encoder match {
    case _: TimestampAsPrefixKeyStateEncoderSpec | _: TimestampAsPostfixKeyStateEncoderSpec => true
    case _ => false
  }
}
