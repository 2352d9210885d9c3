// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state._

/** Spark has reusable iterators since 4.3. */
private[ckpt] trait ReusableScans { store: ReadStateStore =>
  protected def scanFrom(prefix: UnsafeRow, columnFamily: String): StateStoreIterator[UnsafeRowPair]
}
