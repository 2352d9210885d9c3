// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.CheckpointStateStoreProvider
import org.apache.spark.sql.ckpt.common.SparkVersion
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{LongType, StringType, StructField, StructType}

/** The check of the first row that a store reads, with the errors of Spark's providers. */
class StoreFormatSuite extends AnyFunSuite {
  private val other = StructType(Seq(StructField("a", StringType), StructField("b", LongType)))

  private def withRows(body: StoreHarness => Unit): Unit = {
    val harness = new StoreHarness()
    try {
      harness.commit(0, 1, 2)
      body(harness)
    } finally harness.close()
  }

  /** All ways to read the rows of a version, of stores that are opened anew. */
  private def reads(h: StoreHarness, provider: CheckpointStateStoreProvider): Seq[() => Unit] = Seq(
    () => provider.getReadStore(1).get(h.row(1)),
    () => provider.getReadStore(1)
      .multiGet(Array(h.row(3), h.row(1)), StateStore.DEFAULT_COL_FAMILY_NAME).foreach(_ => ()),
    () => provider.getReadStore(1).iterator().next(),
    () => {
      val store = provider.getStore(1)
      try store.get(h.row(1)) finally store.abort()
    })

  test("values that do not fit the schema are refused as Spark's providers refuse them") {
    withRows { h =>
      val provider = h.newProvider(valueSchema = other)
      reads(h, provider).foreach { read =>
        val failure = intercept[StateStoreValueRowFormatValidationFailure](read())
        assert(failure.getCondition == "STATE_STORE_VALUE_ROW_FORMAT_VALIDATION_FAILURE")
        // Spark's error names the store since 4.1.
        assert(SparkVersion.madeFor == "4.0" || failure.getMessage.contains(provider.stateStoreId.toString))
      }
    }
  }

  test("keys that do not fit the schema are refused as Spark's providers refuse them") {
    withRows { h =>
      val provider = h.newProvider(keySchema = other)
      val failure = intercept[StateStoreKeyRowFormatValidationFailure](provider.getReadStore(1).iterator().next())
      assert(failure.getCondition == "STATE_STORE_KEY_ROW_FORMAT_VALIDATION_FAILURE")
    }
  }

  test("a key that is not there is no row to check, and rows that fit are read") {
    withRows { h =>
      assert(h.newProvider(valueSchema = other).getReadStore(1).get(h.row(9)) == null)
      reads(h, h.newProvider()).foreach(_())
    }
  }

  test("Spark's settings switch the check off, and operators with column families have none") {
    withRows { h =>
      val off = h.storeConf(SQLConf.STATE_STORE_FORMAT_VALIDATION_ENABLED.key -> "false")
      reads(h, h.newProvider(conf = off, valueSchema = other)).foreach(_())
      val keysOnly = new StateStoreConf(
        new SQLConf, Map(StateStoreConf.FORMAT_VALIDATION_CHECK_VALUE_CONFIG -> "false"))
      reads(h, h.newProvider(conf = keysOnly, valueSchema = other)).foreach(_())
      reads(h, h.newProvider(useColumnFamilies = true, valueSchema = other)).foreach(_())
    }
  }
}
