// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.ckpt.CheckpointStateStoreProvider
import org.apache.spark.sql.ckpt.common.StoreUsageFailure
import org.apache.spark.sql.ckpt.protocol.Notification
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types._

/** Column families that a reader describes, as Spark's reader of a join's state does since 4.3. */
class RegisteredFamiliesSuite extends AnyFunSuite {
  private val number = StructType(Seq(StructField("n", LongType)))
  private val pair = StructType(Seq(StructField("a", LongType), StructField("b", LongType)))
  private val toPair = UnsafeProjection.create(pair)

  private def two(a: Long, b: Long): UnsafeRow = toPair(InternalRow(a, b)).copy()

  /** A point lookup, and a family in order. */
  private val encoders = Map[String, KeyStateEncoderSpec](
    "left" -> NoPrefixKeyStateEncoderSpec(number),
    "timers" -> RangeKeyScanStateEncoderSpec(pair, Seq(0)))

  private def register(store: CheckpointReadStore): Unit = encoders.foreach { case (name, encoder) =>
    store.registerColFamily(name, encoder.keySchema, number, encoder, false, false)
  }

  private def rows(store: CheckpointReadStore): Seq[Long] =
    store.rangeScan(None, Some(two(2, 0)), "timers").map(_.key.getLong(0)).toSeq

  private def commitRows(h: StoreHarness, provider: CheckpointStateStoreProvider): Unit = {
    val store = provider.getStore(0)
    encoders.foreach { case (name, encoder) =>
      store.createColFamilyIfAbsent(name, encoder.keySchema, number, encoder)
    }
    store.put(h.row(1), h.row(10), "left")
    Seq(2L, 1L, -1L).foreach(a => store.put(two(a, 0), h.row(a), "timers"))
    store.commit()
  }

  test("a store of a version reads families only once they are registered, and so do the next ones") {
    StoreHarness.withFamilies() { (h, provider) =>
      commitRows(h, provider)
      val other = h.newProvider(useColumnFamilies = true)
      val store = other.getReadStore(1)
      intercept[StateStoreUnsupportedOperationOnMissingColumnFamily](store.get(h.row(1), "left"))
      register(store)
      assert(store.get(h.row(1), "left").getLong(0) == 10 && rows(store) == Seq(-1, 1))
      register(store)
      assert(rows(store) == Seq(-1, 1))
      assert(rows(other.getReadStore(1)) == Seq(-1, 1))
      assert(store.allColumnFamilyNames == encoders.keySet + "default")
      other.close()
    }
  }

  test("a family registered anew is read with its new schema") {
    StoreHarness.withFamilies() { (h, provider) =>
      commitRows(h, provider)
      val other = h.newProvider(useColumnFamilies = true)
      val store = other.getReadStore(1)
      register(store)
      assert(rows(store) == Seq(-1, 1))
      store.registerColFamily("left", number, number.add("more", LongType), encoders("left"), false, false)
      assert(store.get(h.row(1), "left").numFields == 2)
      other.close()
    }
  }

  test("a registered family of an empty state has no rows, and can be written to later") {
    StoreHarness.withFamilies() { (h, provider) =>
      val store = provider.getReadStore(0)
      register(store)
      assert(store.get(h.row(1), "left") == null && rows(store).isEmpty && store.iterator("left").isEmpty)
      commitRows(h, provider)
      val next = provider.getReadStore(1)
      assert(next.get(h.row(1), "left").getLong(0) == 10 && rows(next) == Seq(-1, 1))
    }
  }

  test("families registered after the state has left memory hold for the next load") {
    StoreHarness.withFamilies() { (h, provider) =>
      commitRows(h, provider)
      val other = h.newProvider(useColumnFamilies = true)
      val store = other.getReadStore(1)
      other.subtask.notified(Notification(Notification.Ended))
      register(store)
      intercept[StoreUsageFailure](store.get(h.row(1), "left"))
      val next = other.getReadStore(1)
      assert(next.get(h.row(1), "left").getLong(0) == 10 && rows(next) == Seq(-1, 1))
      other.close()
    }
  }

  test("what cannot be created cannot be registered either") {
    StoreHarness.withFamilies() { (h, provider) =>
      val store = provider.getReadStore(0)
      def register(store: CheckpointReadStore, name: String): Unit =
        store.registerColFamily(name, number, number, encoders("left"), false, false)
      Seq("", " left", "default").foreach { name =>
        intercept[StateStoreCannotUseColumnFamilyWithInvalidName](register(store, name))
      }
      intercept[StateStoreCannotCreateColumnFamilyWithReservedChars](register(store, "$mine"))
      intercept[StateStoreUnsupportedOperationException](register(h.provider.getReadStore(0), "left"))
    }
  }
}
