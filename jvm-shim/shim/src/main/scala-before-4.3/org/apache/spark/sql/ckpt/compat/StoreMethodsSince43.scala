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
