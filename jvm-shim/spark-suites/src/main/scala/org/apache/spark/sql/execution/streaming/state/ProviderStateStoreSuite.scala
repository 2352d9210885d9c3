// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state

import java.util.UUID

import scala.jdk.CollectionConverters._
import scala.util.Random

import org.apache.hadoop.conf.Configuration
import org.scalatest.BeforeAndAfter

import org.apache.spark.SparkException
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType

object ProviderUnderTest {
  val Name: String = System.getProperty("suites.provider")

  /** Adds its settings. Sessions adopt these system properties by themselves; a `new SQLConf` has none of them. */
  def configure(conf: SQLConf): SQLConf = {
    System.getProperties.asScala.filter(_._1.startsWith("spark.sql.streaming.stateStore.ckpt."))
      .foreach { case (key, value) => conf.setConfString(key, value) }
    conf
  }

  def create(): StateStoreProvider = StateStoreProvider.create(Name)
}

/** Spark's suite for every provider, with the one under test. */
class ProviderStateStoreSuite extends StateStoreSuiteBase[StateStoreProvider] with BeforeAndAfter {
  import ProviderStateStoreSuite._
  import StateStoreTestsHelper._

  before(stopStores())
  after(stopStores())

  private def stopStores(): Unit = {
    StateStore.stop()
    require(!StateStore.isMaintenanceRunning)
  }

  private def initialised(
      provider: StateStoreProvider = ProviderUnderTest.create(),
      id: StateStoreId = StateStoreId(newDir(), Random.nextInt(), 0),
      keySchema: StructType = keySchema,
      keyStateEncoderSpec: Option[KeyStateEncoderSpec] = None,
      useColumnFamilies: Boolean = false,
      sqlConf: SQLConf = getDefaultSQLConf(
        SQLConf.STATE_STORE_MIN_DELTAS_FOR_SNAPSHOT.defaultValue.get,
        SQLConf.MAX_BATCHES_TO_RETAIN_IN_MEMORY.defaultValue.get),
      hadoopConf: Configuration = new Configuration): StateStoreProvider = {
    hadoopConf.set(RunId.Key, UUID.randomUUID().toString)
    val conf = ProviderUnderTest.configure(sqlConf.clone())
    provider.init(id, keySchema, valueSchema, keyStateEncoderSpec.getOrElse(NoPrefixKeyStateEncoderSpec(keySchema)),
      useColumnFamilies, new StateStoreConf(conf), hadoopConf)
    provider
  }

  override def newStoreProvider(): StateStoreProvider = initialised()

  override def newStoreProvider(storeId: StateStoreId): StateStoreProvider = initialised(id = storeId)

  /** Providers of the tests of iterators. */
  override def newStoreProvider(storeId: StateStoreId, useColumnFamilies: Boolean): StateStoreProvider =
    initialised(new NamedForItsIterators, id = storeId, useColumnFamilies = useColumnFamilies)

  override def newStoreProvider(storeId: StateStoreId, conf: Configuration): StateStoreProvider =
    initialised(id = storeId, hadoopConf = conf)

  override def newStoreProvider(minDeltasForSnapshot: Int, numOfVersToRetainInMemory: Int): StateStoreProvider =
    initialised(sqlConf = getDefaultSQLConf(minDeltasForSnapshot, numOfVersToRetainInMemory))

  override def newStoreProvider(
      keySchema: StructType, keyStateEncoderSpec: KeyStateEncoderSpec, useColumnFamilies: Boolean): StateStoreProvider =
    initialised(keySchema = keySchema, keyStateEncoderSpec = Some(keyStateEncoderSpec),
      useColumnFamilies = useColumnFamilies)

  override def newStoreProvider(useColumnFamilies: Boolean): StateStoreProvider =
    initialised(useColumnFamilies = useColumnFamilies)

  // Spark 4.0 has neither of the next two, so they are not marked as overrides.
  def newStoreProviderWithClonedConf(storeId: StateStoreId): StateStoreProvider =
    initialised(id = storeId, sqlConf = SQLConf.get.clone())

  def newStoreProviderNoInit(): StateStoreProvider = ProviderUnderTest.create()

  /** No provider says which version is its newest; so the versions are tried. */
  override def getLatestData(provider: StateStoreProvider, useColumnFamilies: Boolean): Set[((String, Int), Int)] = {
    val versions = Iterator.from(1).takeWhile(exists(provider.stateStoreId, useColumnFamilies, _))
    getData(provider, versions.foldLeft(0)((_, version) => version), useColumnFamilies)
  }

  private def exists(id: StateStoreId, useColumnFamilies: Boolean, version: Int): Boolean =
    tryWithProviderResource(newStoreProvider(id, useColumnFamilies)) { provider =>
      try {
        provider.getStore(version).abort()
        true
      } catch {
        case _: SparkException => false
      }
    }

  override def getData(
      provider: StateStoreProvider, version: Int, useColumnFamilies: Boolean): Set[((String, Int), Int)] =
    tryWithProviderResource(newStoreProvider(provider.stateStoreId, useColumnFamilies)) { fresh =>
      val store = fresh.getStore(version)
      try store.iterator().map(rowPairToDataPair).toSet finally store.abort()
    }

  override def getDefaultSQLConf(minDeltasForSnapshot: Int, numOfVersToRetainInMemory: Int): SQLConf = {
    val conf = ProviderUnderTest.configure(new SQLConf)
    conf.setConf(SQLConf.STATE_STORE_PROVIDER_CLASS, ProviderUnderTest.Name)
    conf.setConf(SQLConf.STATE_STORE_MIN_DELTAS_FOR_SNAPSHOT, minDeltasForSnapshot)
    conf.setConf(SQLConf.MAX_BATCHES_TO_RETAIN_IN_MEMORY, numOfVersToRetainInMemory)
    conf.setConf(SQLConf.MIN_BATCHES_TO_RETAIN, 2)
    conf.setConf(SQLConf.STATE_STORE_COMPRESSION_CODEC, SQLConf.get.stateStoreCompressionCodec)
    conf
  }

  override def getDefaultStoreConf(): StateStoreConf = {
    val conf = ProviderUnderTest.configure(new SQLConf)
    conf.setConf(SQLConf.STATE_STORE_PROVIDER_CLASS, ProviderUnderTest.Name)
    new StateStoreConf(conf)
  }
}

private object ProviderStateStoreSuite {

  /**
   * Spark has two answers to what an iterator sees of later writes (SPARK-38320), and its tests choose by the name of
   * the store's class. Ours gives the answer of RocksDB's: what was there when the iterator was made.
   */
  class NamedForItsIterators extends WrappingStateStoreProvider(ProviderUnderTest.create()) {
    override protected def wrap(store: StateStore): StateStore = new IteratesLikeRocksDBStateStore(store)
  }

  class IteratesLikeRocksDBStateStore(store: StateStore) extends CkptIdCollectingStateStoreWrapper(store)
}
