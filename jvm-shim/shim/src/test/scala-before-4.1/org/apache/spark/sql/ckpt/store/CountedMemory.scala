// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

/** What Spark's memory manager would count: 4.0's counts only what it allocates. */
private[ckpt] object CountedMemory {
  def bytes: Long = StateMemory.getMemBytesUsed
}
