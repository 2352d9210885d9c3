// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

import java.util.concurrent.CountDownLatch

import io.github.sparkckpt.engine.restore.TableRetiredException
import io.github.sparkckpt.engine.support.{BackendTesting, ByteOrder, FirstWordPrefix}
import io.github.sparkckpt.engine.table.KeyGroupFunction
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.unsafe.Platform

/** A version that is opened again after its batch has committed, and tasks that run on after their end. */
class ReopenedStoreSuite extends AnyFunSuite with BackendTesting {
  private val K = 16

  private def backend(): HashMapStateBackend = {
    val b = newBackend(K)
    b.declareFamily("default", groupsByHash(K))
    b
  }

  private def write(b: HashMapStateBackend, version: Long, entries: (Long, Long)*): Unit = {
    b.openForWrite(version)
    entries.foreach { case (k, v) => put(b.table("default"), longs(k), longs(v)) }
  }

  private def at(b: HashMapStateBackend, key: Long): Option[Long] =
    Option(get(b.table("default"), longs(key))).map(java.nio.ByteBuffer.wrap(_).getLong)

  private def reopened(): HashMapStateBackend = {
    val b = backend()
    write(b, 0, 1L -> 10L, 2L -> 20L)
    b.commit()
    write(b, 1, 1L -> 11L, 3L -> 30L)
    b.commit("first")
    b.reopen()
    b
  }

  test("what was kept is the committed version again after another attempt was committed and dropped") {
    val b = reopened()
    put(b.table("default"), longs(1L), longs(99L))
    assert(at(b, 1).contains(99L) && at(b, 3).isEmpty)
    b.commit("second")
    assert(b.state.isRepeated && b.state.committedId.contains("second"))
    assert(b.undoCommit())
    assert(!b.state.isRepeated && b.state.committedId.contains("first"))
    b.openForWrite(2)
    assert(at(b, 1).contains(11L) && at(b, 2).contains(20L) && at(b, 3).contains(30L))
    assert(b.rowCount == 3)
  }

  test("another attempt that counts takes its place") {
    val b = reopened()
    put(b.table("default"), longs(4L), longs(40L))
    b.commit("second")
    b.dropKept()
    b.openForWrite(2)
    assert(b.state == StoreState.Open(StateVersion(2, "second")))
    assert(at(b, 1).contains(10L) && at(b, 3).isEmpty && at(b, 4).contains(40L))
  }

  test("a version that was kept can be undone, reopened and snapshotted like any other") {
    val b = reopened()
    b.discard()
    b.reopen()
    b.reopen()
    assert(b.isOpen && b.state.committedId.contains("first"))
    b.discard()
    val delta = b.deltaBytes()
    val restored = backend()
    restored.restore(1, 0, Seq(segment(true, base(b))), everything)
    restored.applyDeltas(2, Seq(segment(false, delta)), everything)
    b.openForWrite(2)
    restored.openForWrite(2)
    assert(contents(b.table("default")) == contents(restored.table("default")))
  }

  test("changes of another version are not kept") {
    val b = reopened()
    b.discard()
    b.openForWrite(2)
    b.discard()
    assert(b.state == StoreState.Loaded(StateVersion(2, "first")) && !b.undoCommit())
    intercept[IllegalStateException](b.openForWrite(3))
  }

  test("changes are not kept beyond a state that is loaded anew") {
    val b = reopened()
    b.clear(1)
    assert(b.state == StoreState.Loaded(StateVersion(1, "")) && !b.undoCommit())
    intercept[IllegalStateException](b.openForWrite(2))
  }

  test("a view of the folded version outlives reopening, and no fold") {
    val b = backend()
    write(b, 0, 1L -> 10L)
    b.commit()
    write(b, 1, 1L -> 11L)
    b.commit()
    val view = b.reader("default", 1)
    val pending = b.reader("default", 2)
    val scan = view.iterator()
    b.reopen()
    put(b.table("default"), longs(1), longs(99))
    assert(java.util.Arrays.equals(get(view, longs(1)), longs(10)))
    assert(java.util.Arrays.equals(get(pending, longs(1)), longs(11)))
    assert(scan.advance() && !scan.advance())
    // Another attempt takes the place of this one, whose family is of no more use to anybody.
    val zombie = b.table("default")
    b.reopen()
    intercept[IllegalStateException](get(zombie, longs(1)))
    intercept[IllegalStateException](zombie.iterator())
    assert(java.util.Arrays.equals(get(view, longs(1)), longs(10)))
    b.discard()
    b.fold()
    intercept[IllegalStateException](get(view, longs(1)))
    intercept[IllegalStateException](get(pending, longs(1)))
    intercept[IllegalStateException](scan.advance())
    assert(b.state == StoreState.Loaded(StateVersion(2, "")))
    b.openForWrite(2)
    assert(at(b, 1).contains(11L))
  }

  /** Ways to end an open batch after which its base is opened once more. */
  private val endings = Seq[(String, HashMapStateBackend => Unit)](
    "another opening" -> (_ => ()),
    "discard" -> (_.discard()),
    "an undone commit" -> { b => b.commit(); b.undoCommit() },
    "a commit that the next opening undoes" -> (_.commit()))

  for ((name, end) <- endings; access <- Seq(new FirstWordPrefix, new ByteOrder)) {
    test(s"a task that writes after its batch was ended by $name reaches no other batch, with access by ${access.id}") {
      val b = newBackend(4)
      b.declareFamily("default", groupsByHash(4), access)
      b.openForWrite(0)
      val leftover = b.table("default")
      put(leftover, longs(1L), longs(10L))
      end(b)
      if (name != "another opening") {
        if (name.startsWith("a commit")) intercept[IllegalStateException](put(leftover, longs(5L), longs(50L)))
        else intercept[TableRetiredException](put(leftover, longs(5L), longs(50L)))
      }
      b.openForWrite(0)
      assert(b.table("default") ne leftover)
      intercept[TableRetiredException](put(leftover, longs(6L), longs(60L)))
      intercept[TableRetiredException](get(leftover, longs(1L)))
      // A thread past that check reaches only memory that nothing else reads.
      leftover.writable = true
      put(leftover, longs(7L), longs(70L))
      put(b.table("default"), longs(2L), longs(20L))
      put(leftover, longs(2L), longs(80L))
      remove(leftover, longs(2L))
      assert(b.rowsUpdated == 1 && b.rowCount == 1)
      b.commit()
      put(leftover, longs(8L), longs(80L))
      b.openForWrite(1)
      assert(contents(b.table("default")).keySet == java.util.Set.of(java.nio.ByteBuffer.wrap(longs(2L))))
      assert(at(b, 2).contains(20L))
    }
  }

  test("a put that is under way on another thread while its batch is discarded reaches no other batch") {
    val b = newBackend(4)
    val inPut, goOn = new CountDownLatch(1)
    val groups: KeyGroupFunction = (base: AnyRef, offset: Long, _: Int) => {
      if (Platform.getByte(base, offset + 7) == 7) {
        inPut.countDown()
        goOn.await()
      }
      0
    }
    b.declareFamily("default", groups)
    b.openForWrite(0)
    val family = b.table("default")
    val late = new Thread(() => put(family, longs(7L), longs(70L)))
    late.start()
    inPut.await()
    b.discard()
    b.openForWrite(0)
    goOn.countDown()
    late.join()
    put(b.table("default"), longs(2L), longs(20L))
    assert(b.rowCount == 1)
    val delta = b.deltaBytes()
    b.commit()
    b.openForWrite(1)
    assert(delta.info.entries == 1 && at(b, 7).isEmpty && at(b, 2).contains(20L))
  }
}
