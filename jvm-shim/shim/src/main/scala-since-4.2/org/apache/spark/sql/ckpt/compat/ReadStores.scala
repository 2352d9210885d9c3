// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.execution.streaming.state.{ReadStateStore, StateStore, UnsafeRowPair}

/** Reads of Spark's state stores. */
private[ckpt] object ReadStores {
  def release(store: ReadStateStore): Unit = ReadStoreRelease(store)

  /** The column families of a store. */
  def familyNames(store: StateStore): Set[String] = store.allColumnFamilyNames

  /** The rows of a family of lists; those of a list are neighbours. */
  def listRows(store: StateStore, family: String): Iterator[UnsafeRowPair] = store.iteratorWithMultiValues(family)
}
