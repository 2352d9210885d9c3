// SPDX-License-Identifier: Apache-2.0
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
