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
package org.apache.spark.sql.execution.datasources.v2.state

import org.apache.spark.sql.execution.streaming.state.{ProviderUnderTest, RocksDBStateStoreProvider, StateStoreProvider}
import org.apache.spark.sql.internal.SQLConf

/** Reads of the `statestore` data source, of what the provider under test has written. */
class ProviderStateDataSourceReadSuite extends StateDataSourceReadSuite {
  override protected def newStateStoreProvider(): StateStoreProvider = ProviderUnderTest.create()

  override def beforeAll(): Unit = {
    super.beforeAll()
    // Spark's suites of its own providers set these. The joins in the formats with column families look at the name.
    spark.conf.set(SQLConf.STATE_STORE_PROVIDER_CLASS.key, classOf[RocksDBStateStoreProvider].getName)
    spark.conf.set(SQLConf.STATE_STORE_MIN_DELTAS_FOR_SNAPSHOT.key, 1)
  }

  // What those suites add, and needs no file that a provider of Spark's has written.
  test("ERROR: snapshot of version not found")(testSnapshotNotFound())
  test("provider.getReadStore(snapshotVersion, endVersion)")(testGetReadStoreWithStartVersion())
  test("option snapshotPartitionId")(testSnapshotPartitionId())
}

/** Spark's suite for changes of state from version to version. */
class ProviderStateDataSourceChangeDataReaderSuite extends StateDataSourceChangeDataReaderSuite {
  override protected def newStateStoreProvider(): StateStoreProvider = ProviderUnderTest.create()
}
