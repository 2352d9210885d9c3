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
package org.apache.spark.sql.ckpt.backend

import java.util.concurrent.{Callable, Executors, TimeUnit}

import scala.collection.mutable
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

class SnapshotSuite extends AnyFunSuite with BackendTesting {
  private val K = 128

  test("snapshots written by another thread while batches go on are consistent") {
    val r = new Random(7)
    val backend = newBackend(K)
    val family = backend.declareFamily("default", groupsByHash(K), new FirstWordPrefix)
    val model = new Model
    val writers = Executors.newFixedThreadPool(2)
    try {
      val results = for (version <- 0L until 40L) yield {
        backend.openForWrite(version)
        // Taken in the middle of a batch: the batch does not touch the tables.
        for (_ <- 0 until 2000) change(r, family, model)
        val expected = copyOf(folded(backend))
        val snapshot = backend.snapshotBase()
        for (_ <- 0 until 500) change(r, family, model)
        backend.commit()
        val task: Callable[SegmentBytes] = () => {
          try snapshot.toBytes()
          finally snapshot.close()
        }
        (version, expected, writers.submit(task))
      }
      results.foreach { case (version, expected, written) =>
        val other = newBackend(K)
        val s = written.get(5, TimeUnit.MINUTES)
        other.restore(version, 0, Seq(segment(isBase = true, s)), everything)
        assertSame(contents(other.reader("default", version)), expected, s"version $version")
      }
    } finally {
      writers.shutdownNow()
    }
    assertSame(contents(family), model)
  }

  test("snapshots taken and written by another thread at any moment are of one version each") {
    val r = new Random(8)
    val backend = newBackend(K)
    val family = backend.declareFamily("default", groupsByHash(K), new FirstWordPrefix)
    val model = new Model
    val models = mutable.Map(0L -> copyOf(model))
    val writer = Executors.newSingleThreadExecutor()
    try {
      val results = for (version <- 0L until 60L) yield {
        backend.openForWrite(version)
        for (_ <- 0 until 300) change(r, family, model)
        backend.commit(s"state ${version + 1}")
        models(version + 1) = copyOf(model)
        // One that is closed before the thread comes to it is never taken.
        val snapshot = new DeferredSnapshot(() => backend.snapshotBase())
        if (version % 10 == 9) snapshot.close()
        val task: Callable[Option[(Long, String, SegmentBytes)]] = () =>
          try Some((snapshot.version, snapshot.stateId, snapshot.toBytes()))
          catch { case _: IllegalStateException if version % 10 == 9 => None }
          finally snapshot.close()
        (version, writer.submit(task))
      }
      results.foreach { case (queued, written) =>
        val result = written.get(5, TimeUnit.MINUTES)
        assert(result.isEmpty == (queued % 10 == 9))
        result.foreach { case (version, stateId, bytes) =>
          assert(version >= queued)
          assert(stateId == (if (version == 0) "" else s"state $version"))
          val other = newBackend(K)
          other.restore(version, 0, Seq(segment(isBase = true, bytes)), everything)
          assertSame(contents(other.reader("default", version)), models(version), s"version $version")
        }
      }
    } finally {
      writer.shutdownNow()
    }
  }

  test("a snapshot that waits is of the version folded when it is written, and copies nothing before") {
    val backend = newBackend(K)
    val family = backend.declareFamily("default", groupsByHash(K))
    def next(): Unit = {
      backend.openForWrite(backend.version)
      put(family, longs(1), longs(backend.version))
      backend.commit(s"state ${backend.version}")
      backend.fold()
    }
    next()
    val page = family.table.pages.pageAt(0)
    val waiting = new DeferredSnapshot(() => backend.snapshotBase())
    next()
    assert(family.table.pages.pageAt(0) eq page)
    assert(waiting.version == 2 && waiting.rows == 1)
    val stateId = waiting.stateId
    next()
    assert(waiting.version == 2 && waiting.stateId == stateId)
    if (tier == null) assert(!(family.table.pages.pageAt(0) eq page))
    waiting.close()
    intercept[IllegalStateException](waiting.toBytes())
    val late = new DeferredSnapshot(() => backend.snapshotBase())
    backend.close()
    intercept[IllegalStateException](late.version)
  }

  private def folded(b: HashMapStateBackend): Model = contents(b.reader("default", b.foldedVersion))

  private def change(r: Random, family: HashMapTable, model: Model): Unit = {
    val key = longs(r.nextInt(50), r.nextInt(100))
    if (r.nextInt(3) == 0) {
      remove(family, key)
      model.remove(java.nio.ByteBuffer.wrap(key))
    } else {
      val value = randomBytes(r, 8 * (1 + r.nextInt(3)))
      put(family, key, value)
      model.put(java.nio.ByteBuffer.wrap(key), java.nio.ByteBuffer.wrap(value))
    }
  }

  // A page on the local disk is never changed.
  if (tier == null) test("pages are copied only while a snapshot that has them is open") {
    val backend = newBackend(K)
    val family = backend.declareFamily("default", groupsByHash(K))
    backend.openForWrite(0)
    put(family, longs(1), longs(1))
    backend.commit()
    backend.fold()
    val page = () => family.table.pages.pageAt(0)

    def overwrite(): Unit = {
      backend.openForWrite(backend.version)
      put(family, longs(1), longs(backend.version))
      backend.commit()
      backend.fold()
    }

    val before = page()
    overwrite()
    assert(page() eq before)
    val older = backend.snapshotBase()
    val newer = backend.snapshotBase()
    overwrite()
    val copied = page()
    assert(!(copied eq before))
    overwrite()
    assert(page() eq copied)
    newer.close()
    newer.close()
    overwrite()
    assert(page() eq copied)
    val third = backend.snapshotBase()
    older.close()
    third.close()
    overwrite()
    assert(page() eq copied)
    intercept[IllegalStateException](older.toBytes())
  }

  test("a snapshot knows its version, rows and size") {
    val backend = newBackend(K)
    val family = backend.declareFamily("default", groupsByHash(K))
    backend.openForWrite(0)
    put(family, longs(1), longs(1, 2))
    backend.commit()
    val empty = backend.snapshotBase()
    assert(empty.version == 0 && empty.rows == 0)
    backend.fold()
    val one = backend.snapshotBase()
    assert(one.version == 1 && one.rows == 1 && one.rawBytes == 24)
    empty.close()
    one.close()
  }
}
