// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.ckpt.store.StoreHarness
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.{LongType, StructField, StructType}

class ReusableScansSuite extends AnyFunSuite {
  private val number = StructType(Seq(StructField("n", LongType)))
  private val pair = StructType(Seq(StructField("at", LongType), StructField("key", LongType)))

  private def timer(at: Long, key: Long): UnsafeRow = UnsafeProjection.create(pair)(InternalRow(at, key)).copy()

  test("a scan begins again where it is told to, and sees what was written since") {
    StoreHarness.withFamilies() { (h, provider) =>
      val store = provider.getStore(0)
      store.createColFamilyIfAbsent("timers", pair, number, RangeKeyScanStateEncoderSpec(pair, Seq(0)))
      def put(at: Long, key: Long): Unit = store.put(timer(at, key), h.row(0), "timers")
      for (at <- Seq(-5L, 1L, 2L, 2L, 7L); key <- Seq(1L, 2L)) put(at, key)
      val scan = store.reusableIterator("timers")
      def times: Seq[Long] = scan.map(_.key.getLong(0)).toSeq
      assert(times == Seq(-5, -5, 1, 1, 2, 2, 7, 7))
      scan.refreshAndSeekToPrefix(h.row(2))
      assert(scan.next().key.getLong(0) == 2)
      put(3, 9)
      store.remove(timer(7, 1), "timers")
      scan.refreshAndSeekToPrefix(h.row(2))
      assert(times == Seq(2, 2, 3, 7))
      scan.refreshAndSeekToPrefix(h.row(8))
      assert(!scan.hasNext)
      scan.close()
      store.commit()
    }
  }

  test("only ordered keys have such a scan") {
    StoreHarness.withFamilies() { (h, provider) =>
      val store = provider.getStore(0)
      store.createColFamilyIfAbsent("points", number, number, NoPrefixKeyStateEncoderSpec(number))
      val scan = store.reusableIterator("points")
      intercept[UnsupportedOperationException](scan.refreshAndSeekToPrefix(h.row(1)))
      store.abort()
    }
  }
}
