// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.benchmark

import java.util.UUID

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.util.SerializableConfiguration

/** What every reader of a state has to do at least, as the measure for an import. */
object StateScan {

  /**
   * The number of rows in the state of an aggregation, operator 0: loads each partition through a provider and iterates
   * over its rows, in a Spark job with one task per partition.
   *
   * @param location   checkpoint location
   * @param version    version of the state
   * @param partitions number of partitions
   * @param provider   class of the provider
   */
  def rows(session: SparkSession, location: String, version: Long, partitions: Int, provider: String): Long = {
    session.streams.stateStoreCoordinator // providers report to it
    val sql = session.sessionState.conf.clone()
    sql.setConfString("spark.sql.streaming.stateStore.providerClass", provider)
    val conf = new StateStoreConf(sql)
    val state = new Path(location, "state")
    val hadoopConf = session.sessionState.newHadoopConf()
    val file = new Path(state, "0/0/_metadata/schema")
    val in = file.getFileSystem(hadoopConf).open(file)
    val schema = StateSchemaCompatibilityChecker.readSchemaFile(in).head
    val shared = session.sparkContext.broadcast(new SerializableConfiguration(hadoopConf))
    val place = state.toString
    try session.sparkContext.parallelize(0 until partitions, partitions).map { partition =>
      val id = StateStoreProviderId(StateStoreId(place, 0, partition), UUID.randomUUID())
      val store = StateStoreProvider.createAndInit(id, schema.keySchema, schema.valueSchema,
        NoPrefixKeyStateEncoderSpec(schema.keySchema), useColumnFamilies = false, conf, shared.value.value,
        useMultipleValuesPerKey = false, None)
      try {
        val reader = store.getReadStore(version)
        try reader.iterator().map(_.key.getSizeInBytes).count(_ > 0).toLong finally reader.release()
      } finally store.close()
    }.sum().toLong
    finally shared.destroy()
  }
}
