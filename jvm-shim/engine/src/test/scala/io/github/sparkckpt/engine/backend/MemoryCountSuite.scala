// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

import java.io.OutputStream

import io.github.sparkckpt.engine.restore.{LookupBudget, StoredSegments}
import io.github.sparkckpt.engine.segment.{RestoreFilter, StateSegment}
import io.github.sparkckpt.engine.support.{BackendTesting, ByteOrder, LiveHeap}
import io.github.sparkckpt.engine.table.KeyAccess
import org.scalatest.funsuite.AnyFunSuite

/** A store tells of all the heap that it keeps alive, and keeps nothing alive that is of no use. */
class MemoryCountSuite extends AnyFunSuite with BackendTesting with LiveHeap {
  private val K = 64
  private val Rows = 200000L
  private val Gone = 300000L
  private val groups = groupsByHash(K)

  private def key(i: Long): Array[Byte] = longs(0, i)

  private def value(i: Long): Array[Byte] = new Array[Byte](16 + ((i % 2) * 8).toInt)

  /** Lives from test to test: not part of what is measured. */
  private lazy val (wholeBase, removals) = {
    val backend = opened(Rows + Gone)
    val whole = base(backend)
    backend.openForWrite(1)
    (Rows until Rows + Gone).foreach(i => remove(backend.table("default"), key(i)))
    backend.commit()
    (whole, backend.deltaBytes())
  }

  private def opened(rows: Long, access: KeyAccess = KeyAccess.Point, logsWrites: Boolean = false) = {
    val backend = newBackend(K, logsWrites)
    backend.declareFamily("default", groups, access)
    batch(backend)(f => (0L until rows).foreach(i => put(f, key(i), value(i))))
    backend
  }

  private def batch(backend: HashMapStateBackend)(changes: HashMapTable => Unit): Unit = {
    backend.openForWrite(backend.version)
    changes(backend.table("default"))
    backend.commit()
    backend.fold()
  }

  /** Checks what is counted after each step. */
  private class Check {
    private val before = liveHeap()

    def live: Long = liveHeap() - before

    def apply(backend: HashMapStateBackend, what: String): Unit = assertCounted(backend.memoryBytes, live, what)
  }

  private def stored: StoredSegments = new StoredSegments {
    private val all = Seq(true -> wholeBase, false -> removals)
    override val keyGroups: IndexedSeq[Array[Int]] = all.map(_._2.info.keyGroups).toIndexedSeq
    private def open(i: Int): StateSegment = StateSegment(
      all(i)._1, source(all(i)._2.bytes), all(i)._2.info.offsets, keyGroups = all(i)._2.info.keyGroups)
    override def reading(wanted: Seq[Int])(body: (Int => StateSegment) => Unit): Unit = body(open)
    override def lookingUp(segment: Int)(body: StateSegment => Unit): Unit = body(open(segment))
    override def close(): Unit = ()
    override def unreadable(cause: Throwable): Throwable = cause
    override def loaded(rows: Long): Unit = ()
  }

  for ((name, access) <- Seq[(String, () => KeyAccess)](
      "point" -> (() => KeyAccess.Point), "ordered" -> (() => new ByteOrder))) {
    test(s"batches of a $name family, before and after each of their steps") {
      val check = new Check
      val backend = opened(Rows, access())
      check(backend, "after the first batch")
      backend.openForWrite(1)
      (0L until Rows / 2).foreach(i => put(backend.table("default"), key(i * 3), value(i + 1)))
      check(backend, "an open batch")
      backend.commit()
      backend.writeDelta(OutputStream.nullOutputStream())
      check(backend, "a committed batch, after its delta was written")
      backend.fold()
      check(backend, "a folded batch")
      batch(backend)(f => (0L until Rows / 2).foreach(i => remove(f, key(i * 3))))
      check(backend, "after removals")
    }
  }

  test("a restore that looks rows up, before and after the rest is loaded") {
    stored
    val check = new Check
    val backend = newBackend(K)
    backend.declareFamily("default", groups)
    backend.restoreLater(2, Rows, stored, LookupBudget(Rows / 8, 25, Rows / K / 32))
    backend.openForWrite(2)
    (0L until 200L).foreach(i => assert(get(backend.table("default"), key(i * 997 % Rows)) != null))
    assert(get(backend.table("default"), key(Rows + 1)) == null)
    assert(backend.isPending)
    check(backend, "while rows are looked up")
    backend.discard()
    backend.loadRest()
    assert(backend.rowCount == Rows)
    check(backend, "once everything is loaded")
    batch(backend)(f => put(f, key(1), value(1)))
    check(backend, "after a later batch")
    val eager = newBackend(K)
    eager.declareFamily("default", groups)
    eager.restore(2, Rows,
      Seq(segment(isBase = true, wholeBase), segment(isBase = false, removals)), RestoreFilter.range(0, K - 1))
    assert(backend.memoryBytes < eager.memoryBytes * 1.1, "a restore that looks rows up keeps more than an eager one")
  }

  test("batches that are abandoned, undone and repeated") {
    val check = new Check
    val backend = opened(Rows)
    def write(by: Int): Unit =
      (0L until Rows / 2).foreach(i => put(backend.table("default"), key(i * by), value(i + 1)))
    backend.openForWrite(1)
    write(2)
    backend.discard()
    check(backend, "an abandoned batch")
    backend.openForWrite(1)
    write(3)
    backend.commit("a")
    backend.reopen()
    check(backend, "a committed batch whose base is open again")
    write(5)
    check(backend, "a batch that repeats a committed one")
    backend.commit("b")
    check(backend, "two commits of one batch")
    assert(backend.undoCommit())
    check(backend, "the first commit again")
    backend.dropKept()
    assert(backend.undoCommit())
    check(backend, "an undone batch")
  }

  test("a snapshot keeps the pages that batches have replaced, and its writer has memory of its own") {
    val check = new Check
    val backend = opened(Rows)
    val snapshot = backend.snapshotBase()
    check(backend, "a snapshot of an unchanged table")
    batch(backend)(f => (0L until Rows / 2).foreach(i => put(f, key(i * 2), value(i * 2))))
    check(backend, "a snapshot whose pages were copied")
    val second = backend.snapshotBase()
    batch(backend)(f => (0L until Rows / 2).foreach(i => put(f, key(i * 2), value(i * 2))))
    check(backend, "two snapshots")
    var blocks = 0
    snapshot.write(new OutputStream {
      override def write(b: Int): Unit = ()
      override def write(bytes: Array[Byte], from: Int, count: Int): Unit = {
        blocks += 1
        if (blocks == K / 2) check(backend, "while a base is written")
      }
    })
    snapshot.close()
    check(backend, "after the first one was closed")
    second.close()
    check(backend, "after both were closed")
  }

  test("a family that is dropped, and its namesake") {
    val check = new Check
    val backend = opened(Rows)
    backend.openForWrite(1)
    backend.dropFamily("default")
    check(backend, "a dropped family")
    backend.declareFamily("default", groups)
    (0L until Rows).foreach(i => put(backend.table("default"), key(i), value(i)))
    check(backend, "another family of its name")
    backend.commit()
    backend.fold()
    check(backend, "after the fold")
  }
}
