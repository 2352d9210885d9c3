// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state

/** What a wrapping provider gets from the inner one, by the methods of this Spark minor. */
trait WrappedStores extends StateStoreProvider {
  protected def inner: StateStoreProvider
  protected def wrap(store: StateStore): StateStore

  override def getStore(version: Long, stateStoreCkptId: Option[String]): StateStore =
    wrap(inner.getStore(version, stateStoreCkptId))
}
