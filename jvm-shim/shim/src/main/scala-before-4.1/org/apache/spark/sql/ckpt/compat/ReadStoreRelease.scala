// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.execution.streaming.state.ReadStateStore

private[compat] object ReadStoreRelease {
  /** `release` exists since Spark 4.1. */
  def apply(store: ReadStateStore): Unit = store.abort()
}
