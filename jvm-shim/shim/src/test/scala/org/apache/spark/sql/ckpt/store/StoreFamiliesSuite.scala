// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.avro.SchemaConverters
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.ckpt.CheckpointStateStoreProvider
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

class StoreFamiliesSuite extends AnyFunSuite {
  private val number = StructType(Seq(StructField("n", LongType)))
  private val pair = StructType(Seq(StructField("a", LongType), StructField("b", LongType)))

  private def row(schema: StructType, values: Any*): UnsafeRow =
    UnsafeProjection.create(schema)(InternalRow(values: _*)).copy()

  private def one(n: Long): UnsafeRow = row(number, n)

  private def two(a: Long, b: Long): UnsafeRow = row(pair, a, b)

  private def points(store: StateStore, name: String, multiple: Boolean = false, internal: Boolean = false): Unit =
    store.createColFamilyIfAbsent(name, number, number, NoPrefixKeyStateEncoderSpec(number), multiple, internal)

  private def numbers(rows: Iterator[UnsafeRow]): Seq[Long] = rows.map(_.getLong(0)).toSeq

  test("families are apart, survive a load, and their rows are counted as Spark counts them") {
    StoreHarness.withFamilies() { (h, provider) =>
      val store = provider.getStore(0)
      points(store, "left")
      points(store, "$index", internal = true)
      store.put(one(1), one(10), "left")
      store.put(one(1), one(11), "$index")
      store.put(one(2), one(12), "$index")
      assert(store.get(one(1)) == null && store.get(one(1), "left").getLong(0) == 10)
      store.commit()
      assert(store.metrics.numKeys == 1 && h.metrics(store)("ckptIndexRows") == 2)
      val other = h.newProvider(useColumnFamilies = true)
      val loaded = other.getStore(1)
      assert(loaded.allColumnFamilyNames == Set("default", "left", "$index"))
      points(loaded, "left")
      points(loaded, "$index", internal = true)
      assert(loaded.get(one(1), "$index").getLong(0) == 11 && loaded.get(one(2), "left") == null)
      loaded.abort()
      other.close()
    }
  }

  test("a family that is removed is gone with the commit, and back if the batch is given up") {
    StoreHarness.withFamilies() { (_, provider) =>
      val first = provider.getStore(0)
      points(first, "left")
      first.put(one(1), one(10), "left")
      first.commit()
      val aborted = provider.getStore(1)
      assert(aborted.removeColFamilyIfExists("left") && !aborted.removeColFamilyIfExists("left"))
      intercept[StateStoreUnsupportedOperationOnMissingColumnFamily](aborted.get(one(1), "left"))
      aborted.abort()
      val again = provider.getStore(1)
      points(again, "left")
      assert(again.get(one(1), "left").getLong(0) == 10)
      again.removeColFamilyIfExists("left")
      again.commit()
      val last = provider.getStore(2)
      points(last, "left")
      assert(last.get(one(1), "left") == null)
    }
  }

  test("what Spark's RocksDB provider refuses is refused with the same errors") {
    StoreHarness.withFamilies() { (h, provider) =>
      val store = provider.getStore(0)
      Seq("", " left", "left ", "default").foreach { name =>
        intercept[StateStoreCannotUseColumnFamilyWithInvalidName](points(store, name))
        intercept[StateStoreCannotUseColumnFamilyWithInvalidName](store.removeColFamilyIfExists(name))
      }
      intercept[StateStoreCannotCreateColumnFamilyWithReservedChars](points(store, "$mine"))
      intercept[StateStoreUnsupportedOperationOnMissingColumnFamily](store.put(one(1), one(1), "left"))
      points(store, "left")
      intercept[IllegalStateException](store.merge(one(1), one(1), "left"))
      val single = h.open(0)
      intercept[StateStoreUnsupportedOperationException](points(single, "left"))
      intercept[StateStoreUnsupportedOperationException](single.get(one(1), "left"))
    }
  }

  test("values in Avro are read with the schema of today, whatever they were written with") {
    val longer = number.add("text", StringType)
    def known(schemas: StructType*): StateSchemaProvider = new InMemoryStateSchemaProvider(StateSchemaMetadata(
      (for (name <- Seq("one", "many"); (schema, id) <- schemas.zipWithIndex) yield
        StateSchemaMetadataKey(name, id.toShort, isKey = false) ->
          StateSchemaMetadataValue(schema, SchemaConverters.toAvroTypeWithDefaults(schema))).toMap))
    StoreHarness.withFamilies() { (h, _) =>
      def open(version: Long, schemas: StructType*): (CheckpointStateStoreProvider, CheckpointStateStore) = {
        val conf = h.storeConf(SQLConf.STREAMING_STATE_STORE_ENCODING_FORMAT.key -> "avro")
        val provider = h.newProvider(useColumnFamilies = true, conf = conf, schemas = Some(known(schemas: _*)))
        val store = provider.getStore(version)
        Seq("one" -> false, "many" -> true).foreach { case (name, multiple) =>
          store.createColFamilyIfAbsent(name, number, schemas.last, NoPrefixKeyStateEncoderSpec(number), multiple)
        }
        (provider, store)
      }
      def texts(rows: Iterator[UnsafeRow]): Seq[(Long, String)] =
        rows.map(row => row.getLong(0) -> (if (row.isNullAt(1)) null else row.getString(1))).toSeq
      val (first, store) = open(0, number)
      store.put(one(1), one(10), "one")
      store.putList(one(1), Array(one(20), one(21)), "many")
      assert(store.get(one(1), "one").getLong(0) == 10)
      store.commit()
      val (second, later) = open(1, number, longer)
      val text = UTF8String.fromString("x" * 100)
      later.put(one(2), row(longer, 11L, text), "one")
      later.merge(one(1), row(longer, 22L, text), "many")
      later.mergeList(one(1), Array(row(longer, 23L, null)), "many")
      assert(texts(later.iterator("one").map(_.value)).toSet == Set(10L -> null, 11L -> text.toString))
      val many = Seq(20L -> null, 21L -> null, 22L -> text.toString, 23L -> null)
      assert(texts(later.valuesIterator(one(1), "many")) == many)
      later.commit()
      assert(texts(second.getStateStoreChangeDataReader(1, 2, Some("many"), None).map(_._3)) == many)
      Seq(first, second).foreach(_.close())
    }
  }

  test("a range scan gives keys in the order of their values, null last, whatever their type") {
    val doubles = Seq(Double.NegativeInfinity, -2.5, -0.0, 0.0, 1e-300, 7.0, Double.NaN)
    val types = Seq(
      LongType -> Seq(Long.MinValue, -5L, -1L, 0L, 1L, 256L, Long.MaxValue),
      IntegerType -> Seq(Int.MinValue, -256, 0, 3, Int.MaxValue),
      ShortType -> Seq(Short.MinValue, -1.toShort, 0.toShort, 500.toShort),
      ByteType -> Seq(Byte.MinValue, -1.toByte, 0.toByte, 100.toByte),
      BooleanType -> Seq(false, true),
      DoubleType -> doubles,
      FloatType -> doubles.map(_.toFloat).distinct)
    StoreHarness.withFamilies() { (_, provider) =>
      val store = provider.getStore(0)
      types.foreach { case (dataType, values) =>
        val schema = StructType(Seq(StructField("id", LongType), StructField("at", dataType)))
        val name = dataType.typeName
        store.createColFamilyIfAbsent(name, schema, number, RangeKeyScanStateEncoderSpec(schema, Seq(1)))
        val keys = (values :+ null).zipWithIndex
        new scala.util.Random(3).shuffle(keys)
          .foreach { case (value, i) => store.put(row(schema, 9L, value), one(i), name) }
        assert(numbers(store.iterator(name).map(_.value)) == keys.indices, name)
        val some = store.rangeScan(Some(row(schema, 9L, values(1))), Some(row(schema, 9L, null)), name)
        assert(numbers(some.map(_.value)) == (1 until values.length), name)
      }
      store.commit()
      val loaded = provider.getStore(1)
      loaded.deleteRange(row(new StructType().add("id", LongType).add("at", LongType), 9L, -5L),
        row(new StructType().add("id", LongType).add("at", LongType), 9L, 1L), "long")
      assert(numbers(loaded.iterator("long").map(_.value)) == Seq(0, 4, 5, 6, 7))
    }
  }

  test("evicting during a scan, of what it gives and of what is to come, disturbs neither") {
    StoreHarness.withFamilies() { (_, provider) =>
      val store = provider.getStore(0)
      store.createColFamilyIfAbsent("timers", pair, number, RangeKeyScanStateEncoderSpec(pair, Seq(0)))
      store.createColFamilyIfAbsent("byFirst", pair, number, PrefixKeyScanStateEncoderSpec(pair, 1))
      for (a <- 0L until 50; name <- Seq("timers", "byFirst")) store.put(two(a % 10, a), one(a), name)
      store.commit()
      val next = provider.getStore(1)
      val before = next.iterator("timers")
      assert(before.next().value != null)
      before.close()
      assert(!before.hasNext)
      var steps = 0
      next.rangeScan(None, Some(two(5, 0)), "timers").foreach { entry =>
        next.remove(entry.key, "timers")
        next.put(two(3, 1000 + steps), one(0), "timers")
        steps += 1
      }
      assert(steps == 25, "a scan ends, and gives nothing that came after its start")
      assert(next.iterator("timers").size == 50)
      next.prefixScan(one(4), "byFirst").foreach(entry => next.remove(entry.key, "byFirst"))
      assert(next.prefixScan(one(4), "byFirst").isEmpty && next.iterator("byFirst").size == 45)
    }
  }

  test("a list is read whole or by its first row, and put by one row or many") {
    StoreHarness.withFamilies() { (_, provider) =>
      val store = provider.getStore(0)
      points(store, "lists", multiple = true)
      assert(store.valuesIterator(one(1), "lists").isEmpty && store.get(one(1), "lists") == null)
      store.merge(one(1), one(10), "lists")
      store.mergeList(one(1), Array(one(11), one(12)), "lists")
      assert(numbers(store.valuesIterator(one(1), "lists")) == Seq(10, 11, 12))
      assert(store.get(one(1), "lists").getLong(0) == 10)
      store.put(one(1), one(13), "lists")
      assert(numbers(store.iteratorWithMultiValues("lists").map(_.value)) == Seq(13))
      store.putList(one(1), Array(one(14), one(15)), "lists")
      assert(numbers(store.iterator("lists").map(_.value)) == Seq(14))
      store.commit()
      assert(store.metrics.numKeys == 1)
    }
  }
}
