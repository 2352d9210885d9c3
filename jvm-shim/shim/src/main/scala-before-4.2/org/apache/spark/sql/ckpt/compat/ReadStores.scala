// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.execution.streaming.state.{ReadStateStore, StateStore, UnsafeRowPair}

/** Reads of Spark's state stores. */
private[ckpt] object ReadStores {
  def release(store: ReadStateStore): Unit = ReadStoreRelease(store)

  /** Stores name their column families since Spark 4.2. */
  def familyNames(store: StateStore): Set[String] = Set.empty

  /** The rows of a family of lists; those of a list are neighbours. Stores iterate over lists since Spark 4.2. */
  def listRows(store: StateStore, family: String): Iterator[UnsafeRowPair] = {
    val rows = new UnsafeRowPair()
    store.iterator(family).flatMap { pair =>
      val key = pair.key.copy()
      store.valuesIterator(key, family).map(rows.withRows(key, _))
    }
  }
}
