// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.execution.streaming.state.KeyStateEncoderSpec
import org.apache.spark.sql.types.StructType

/** Methods of `ReadStateStore` since Spark 4.3, declared so that common code can override them. */
private[ckpt] trait ReadMethodsSince43 {
  def registerColFamily(
      columnFamily: String,
      keySchema: StructType,
      valueSchema: StructType,
      keyStateEncoderSpec: KeyStateEncoderSpec,
      useMultipleValuesPerKey: Boolean,
      isInternal: Boolean): Unit
}

/**
 * Fields of Spark 4.3's `StateStoreProvider`, which its constructor sets. Without them this jar would fail on Spark 4.3
 * in the constructor, before it can say that it is the wrong one.
 */
private[ckpt] trait ProviderMethodsSince43 {
  def unloaded_$eq(value: Boolean): Unit = ()

  def org$apache$spark$sql$execution$streaming$state$StateStoreProvider$_setter_$maintenanceLock_$eq(
      value: java.util.concurrent.locks.ReentrantReadWriteLock): Unit = ()
}
