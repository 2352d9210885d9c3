// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.SparkException
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.ckpt.CheckpointStateStoreProvider
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.{LongType, StructField, StructType}

class StoreReplaySuite extends AnyFunSuite {
  private val number = StructType(Seq(StructField("n", LongType)))

  /** Four batches: puts, a removal and a put, nothing, a put. */
  private def fourBatches(h: StoreHarness, provider: CheckpointStateStoreProvider): Unit = {
    def batch(version: Long)(body: CheckpointStateStore => Unit): Unit = {
      val store = provider.getStore(version)
      store.createColFamilyIfAbsent("lists", number, number, NoPrefixKeyStateEncoderSpec(number), true)
      body(store)
      store.commit()
    }
    batch(0) { store =>
      store.put(h.row(1), h.row(10))
      store.put(h.row(1), h.row(11))
      store.putList(h.row(7), Array(h.row(70), h.row(71)), "lists")
    }
    batch(1) { store =>
      store.remove(h.row(1))
      store.put(h.row(2), h.row(20))
      store.merge(h.row(7), h.row(72), "lists")
    }
    batch(2)(_ => ())
    batch(3)(_.put(h.row(2), h.row(21)))
  }

  private def changes(feed: Iterator[(RecordType.Value, UnsafeRow, UnsafeRow, Long)]): Seq[(Long, String, Long, Long)] =
    feed.map { case (kind, key, value, batch) =>
      (batch, RecordType.getRecordTypeAsString(kind), key.getLong(0), if (value == null) -1L else value.getLong(0))
    }.toSeq

  private def rows(store: ReadStateStore): Map[Long, Long] =
    store.iterator().map(pair => pair.key.getLong(0) -> pair.value.getLong(0)).toMap

  test("the change feed gives what each batch has made of a key, and each row of a list") {
    StoreHarness.withFamilies() { (h, provider) =>
      fourBatches(h, provider)
      def feed(from: Long, until: Long, family: Option[String] = None) =
        changes(provider.getStateStoreChangeDataReader(from, until, family, None))
      val all = feed(1, 4)
      assert(all.map(_._1) == Seq(0, 1, 1, 3))
      assert(all.toSet == Set((0, "update", 1, 11), (1, "delete", 1, -1), (1, "update", 2, 20), (3, "update", 2, 21)))
      assert(feed(3, 4) == Seq((3, "update", 2, 21)) && feed(3, 3).isEmpty)
      assert(feed(1, 4, Some("lists")) == Seq((0, "update", 7, 70), (0, "append", 7, 71), (1, "append", 7, 72)))
      intercept[StateStoreUnsupportedOperationOnMissingColumnFamily](feed(1, 4, Some("other")))
    }
  }

  test("with changeFeed=writes the change feed gives each write of a batch, in order, and the state is the same") {
    StoreHarness.withFamilies("changeFeed" -> "writes") { (h, provider) =>
      fourBatches(h, provider)
      val store = provider.getStore(4)
      store.createColFamilyIfAbsent("lists", number, number, NoPrefixKeyStateEncoderSpec(number), true)
      store.put(h.row(3), h.row(30))
      store.remove(h.row(3))
      store.merge(h.row(8), h.row(80), "lists")
      store.putList(h.row(8), Array(h.row(81), h.row(82)), "lists")
      store.merge(h.row(8), h.row(83), "lists")
      store.remove(h.row(8), "lists")
      store.merge(h.row(8), h.row(84), "lists")
      store.remove(h.row(9), "lists")
      store.commit()
      def feed(from: Long, until: Long, family: Option[String] = None) =
        changes(provider.getStateStoreChangeDataReader(from, until, family, None))
      assert(feed(1, 1) == Seq((0, "update", 1, 10), (0, "update", 1, 11)))
      assert(feed(2, 4).toSet == Set((1, "delete", 1, -1), (1, "update", 2, 20), (3, "update", 2, 21)))
      assert(feed(5, 5) == Seq((4, "update", 3, 30), (4, "delete", 3, -1)))
      assert(feed(1, 4, Some("lists")) == Seq((0, "update", 7, 70), (0, "append", 7, 71), (1, "append", 7, 72)))
      assert(feed(5, 5, Some("lists")) == Seq(
        (4, "append", 8, 80), (4, "update", 8, 81), (4, "append", 8, 82), (4, "append", 8, 83), (4, "delete", 8, -1),
        (4, "append", 8, 84)))
      val other = h.newProvider(useColumnFamilies = true)
      val loaded = other.getStore(5)
      loaded.createColFamilyIfAbsent("lists", number, number, NoPrefixKeyStateEncoderSpec(number), true)
      assert(rows(loaded) == Map(2L -> 21L))
      assert(loaded.valuesIterator(h.row(8), "lists").map(_.getLong(0)).toSeq == Seq(84))
      other.close()
    }
  }

  test("the change feed gives a deletion for each key of a deleted range") {
    for (feed <- Seq("outcome", "writes")) StoreHarness.withFamilies("changeFeed" -> feed) { (h, provider) =>
      def batch(version: Long)(body: CheckpointStateStore => Unit): Unit = {
        val store = provider.getStore(version)
        store.createColFamilyIfAbsent("times", number, number, RangeKeyScanStateEncoderSpec(number, Seq(0)))
        body(store)
        store.commit()
      }
      batch(0)(store => for (n <- -2L to 5L) store.put(h.row(n), h.row(10 * n), "times"))
      batch(1) { store =>
        store.put(h.row(4), h.row(41), "times")
        store.deleteRange(h.row(-1), h.row(5), "times")
        store.put(h.row(2), h.row(21), "times")
      }
      val seen = changes(provider.getStateStoreChangeDataReader(2, 2, Some("times"), None))
      val deleted = seen.collect { case (1, "delete", key, -1) => key }
      val written = seen.collect { case (1, "update", key, value) => key -> value }
      if (feed == "writes") {
        assert(deleted.sorted == (-1L to 4L) && written.sorted == Seq(2 -> 21, 4 -> 41))
      } else {
        assert(deleted.sorted == Seq(-1, 0, 1, 3, 4) && written == Seq(2 -> 21))
      }
      val store = provider.getStore(2)
      store.createColFamilyIfAbsent("times", number, number, RangeKeyScanStateEncoderSpec(number, Seq(0)))
      assert(store.iterator("times").map(_.value.getLong(0)).toSeq == Seq(-20, 21, 50))
      store.abort()
    }
  }

  test("a version is replayed from an earlier one, to be read or to be written to") {
    StoreHarness.withFamilies() { (h, provider) =>
      fourBatches(h, provider)
      val other = h.newProvider(useColumnFamilies = true)
      assert(rows(other.replayReadStateFromSnapshot(1, 4, None, None)) == Map(2L -> 21L))
      assert(rows(other.replayReadStateFromSnapshot(1, 1, None, None)) == Map(1L -> 11L))
      val store = other.replayStateFromSnapshot(2, 4, readOnly = false, None, None)
      assert(store.version == 4)
      store.createColFamilyIfAbsent("lists", number, number, NoPrefixKeyStateEncoderSpec(number), true)
      assert(store.valuesIterator(h.row(7), "lists").map(_.getLong(0)).toSeq == Seq(70, 71, 72))
      store.put(h.row(3), h.row(30))
      assert(store.commit() == 5)
      assert(rows(provider.getReadStore(5)) == Map(2L -> 21L, 3L -> 30L))
      intercept[SparkException](other.replayReadStateFromSnapshot(0, 4, None, None))
      intercept[SparkException](other.replayReadStateFromSnapshot(3, 2, None, None))
      other.close()
    }
  }

  test("a store that is opened empty leaves only what is put, or everything if it is given up") {
    StoreHarness.withFamilies() { (h, provider) =>
      fourBatches(h, provider)
      val aborted = provider.getStore(4, None, forceSnapshotOnCommit = false, loadEmpty = true)
      assert(rows(aborted).isEmpty && aborted.get(h.row(2)) == null)
      aborted.abort()
      assert(rows(provider.getReadStore(4)) == Map(2L -> 21L))
      val store = provider.getStore(4, None, forceSnapshotOnCommit = false, loadEmpty = true)
      store.put(h.row(5), h.row(50))
      store.commit()
      assert(store.metrics.numKeys == 1)
      val other = h.newProvider(useColumnFamilies = true)
      val loaded = other.getStore(5)
      loaded.createColFamilyIfAbsent("lists", number, number, NoPrefixKeyStateEncoderSpec(number), true)
      assert(rows(loaded) == Map(5L -> 50L) && loaded.iterator("lists").isEmpty)
      other.close()
    }
  }
}
