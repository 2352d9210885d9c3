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
