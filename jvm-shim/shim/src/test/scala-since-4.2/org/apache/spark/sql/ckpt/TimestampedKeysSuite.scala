// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.ckpt.store.StoreHarness
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types._

/** Encoders of keys with a timestamp, which Spark has since 4.2. */
class TimestampedKeysSuite extends AnyFunSuite {
  private val number = StructType(Seq(StructField("n", LongType)))

  private def row(schema: StructType, values: Any*): UnsafeRow =
    UnsafeProjection.create(schema)(InternalRow(values: _*)).copy()

  private def one(n: Long): UnsafeRow = row(number, n)

  private def numbers(rows: Iterator[UnsafeRow]): Seq[Long] = rows.map(_.getLong(0)).toSeq

  test("keys with a timestamp are scanned by time, or by key and then time, with all their values") {
    StoreHarness.withFamilies() { (h, provider) =>
      val schema = TimestampKeyStateEncoder.keySchemaWithTimestamp(number)
      def declare(store: StateStore): Unit = {
        store.createColFamilyIfAbsent("byTime", number, number, TimestampAsPrefixKeyStateEncoderSpec(schema), true)
        store.createColFamilyIfAbsent("byKey", number, number, TimestampAsPostfixKeyStateEncoderSpec(schema), true)
      }
      val store = provider.getStore(0)
      declare(store)
      for (time <- Seq(30L, -10L, 20L); key <- Seq(2L, 1L); name <- Seq("byTime", "byKey")) {
        store.putList(row(schema, key, time), Array(one(100 * key + time), one(0)), name)
      }
      store.commit()
      val other = h.newProvider(useColumnFamilies = true)
      val loaded = other.getStore(1)
      declare(loaded)
      loaded.merge(row(schema, 1L, 20L), one(7), "byKey")
      assert(numbers(loaded.prefixScanWithMultiValues(one(1), "byKey").map(_.value)) == Seq(90, 0, 120, 0, 7, 130, 0))
      val early = loaded.rangeScanWithMultiValues(None, Some(row(schema, 0L, 30L)), "byTime")
      assert(early.map(_.key.getLong(1)).toSeq == Seq(-10, -10, -10, -10, 20, 20, 20, 20))
      assert(numbers(loaded.prefixScan(one(2), "byKey").map(_.value)) == Seq(190, 220, 230), "the first of each list")
      intercept[IllegalStateException](loaded.prefixScan(one(2), "byTime"))
      other.close()
    }
  }
}
