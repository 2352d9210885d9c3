// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

import java.nio.file.Files
import java.util.concurrent.{CountDownLatch, TimeUnit}

import scala.util.Try

import io.github.sparkckpt.engine.pages.LocalFile
import io.github.sparkckpt.engine.support.{BackendTesting, EvictedState, PausingChannel}
import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

/** A killed task stands still in a read of the local disk, while later batches use the same table. */
class AbandonedReaderSuite extends AnyFunSuite with BackendTesting with BeforeAndAfterEach {
  private val open = LocalFile.open
  private val keyGroups = 4

  @volatile private var slow: Thread = _
  private var reached, goOn: CountDownLatch = _
  private var pausesBefore = false

  override def beforeEach(): Unit = {
    slow = null
    reached = new CountDownLatch(1)
    goOn = new CountDownLatch(1)
    LocalFile.open = (path, options) =>
      new PausingChannel(open(path, options), () => pause(pausesBefore), () => pause(!pausesBefore))
  }

  override def afterEach(): Unit = LocalFile.open = open

  private def pause(here: Boolean): Unit = if (here && (Thread.currentThread eq slow)) {
    reached.countDown()
    assert(goOn.await(10, TimeUnit.MINUTES))
  }

  private class Store {
    val backend: HashMapStateBackend =
      new HashMapStateBackend(keyGroups, false, EvictedState.tier(Files.createTempDirectory("abandoned")))
    backend.declareFamily("default", groupsByHash(keyGroups))

    def table: HashMapTable = backend.table("default")

    def batch(changes: => Unit): Unit = {
      backend.openForWrite(backend.version)
      changes
      backend.commit()
      backend.fold()
    }
  }

  private def value(i: Int): Array[Byte] = Array.fill(64)(i.toByte)

  /** Reads a key in a task that stands still in its read; returns the end of the task, with what it found. */
  private def abandoned(store: Store, key: Array[Byte]): () => Try[Array[Byte]] = {
    store.backend.openForWrite(store.backend.version)
    val table = store.table
    @volatile var found: Try[Array[Byte]] = null
    val task = new Thread(() => found = Try(get(table, key)))
    slow = task
    task.start()
    assert(reached.await(10, TimeUnit.MINUTES))
    store.backend.discard()
    () => {
      goOn.countDown()
      task.join()
      found
    }
  }

  test("the record that it reads is not taken for the one that has the address now") {
    pausesBefore = false
    val store = new Store
    val (first, second) = (longs(1, 0), longs(2, 0))
    store.batch(put(store.table, first, value(1)))
    val end = abandoned(store, first)
    store.batch {
      remove(store.table, first)
      put(store.table, second, value(2))
    }
    end()
    store.backend.openForWrite(store.backend.version)
    assert(get(store.table, second) != null && get(store.table, second).sameElements(value(2)))
    assert(get(store.table, first) == null)
    put(store.table, second, value(3))
    store.backend.commit()
    store.backend.fold()
    assert(store.backend.rowCount == 1 && !store.backend.isBroken)
  }

  test("other bytes in the blocks that it reads are no failure of the file") {
    pausesBefore = true
    val store = new Store
    val (first, second) = (longs(1, 0), longs(2, 0))
    store.batch(put(store.table, first, value(1)))
    val end = abandoned(store, first)
    store.batch {
      remove(store.table, first)
      put(store.table, second, value(2))
    }
    assert(end().isFailure)
    assert(!store.backend.isBroken)
    store.backend.openForWrite(store.backend.version)
    assert(get(store.table, second).sameElements(value(2)))
  }
}
