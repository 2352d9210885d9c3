// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state._

/**
 * Spark's `SupportsReusableIterator`. In real-time mode, `transformWithState` looks for expired timers and values after
 * each row, from where it stopped the last time (`TimerStateImpl`, `TTLState`).
 */
private[ckpt] trait ReusableScans extends SupportsReusableIterator { store: ReadStateStore =>

  /** Entries in the order of their keys, from those with a prefix on. */
  protected def scanFrom(prefix: UnsafeRow, columnFamily: String): StateStoreIterator[UnsafeRowPair]

  /** Begins at the first key. */
  override def reusableIterator(colFamilyName: String): ReusableIterator[UnsafeRowPair] =
    new ReusableIterator[UnsafeRowPair] {
      private var scan = store.iterator(colFamilyName)

      override def refreshAndSeekToPrefix(prefixKey: UnsafeRow): Unit = {
        close()
        scan = scanFrom(prefixKey, colFamilyName)
      }

      override def hasNext: Boolean = scan.hasNext

      override def next(): UnsafeRowPair = scan.next()

      override def close(): Unit = scan.close()
    }
}
