package org.apache.spark.sql.ckpt.backend

import org.scalatest.funsuite.AnyFunSuite

/** A version that is opened again after its batch has committed, and tasks that run on after their end. */
class SetAsideSuite extends AnyFunSuite with BackendTesting {
  private val K = 16

  private def backend(): HashMapStateBackend = {
    val b = new HashMapStateBackend(K)
    b.declareFamily(FamilySpec("default", groupsByHash(K)))
    b
  }

  private def write(b: HashMapStateBackend, version: Long, entries: (Long, Long)*): Unit = {
    b.openForWrite(version)
    entries.foreach { case (k, v) => put(b.family("default"), longs(k), longs(v)) }
  }

  private def at(b: HashMapStateBackend, key: Long): Option[Long] =
    Option(get(b.family("default"), longs(key))).map(java.nio.ByteBuffer.wrap(_).getLong)

  private def committed(): (HashMapStateBackend, SetAsideChanges) = {
    val b = backend()
    write(b, 0, 1L -> 10L, 2L -> 20L)
    b.commit()
    write(b, 1, 1L -> 11L, 3L -> 30L)
    b.commit()
    (b, b.setAside())
  }

  test("what was set aside is the committed version again after another attempt was committed and dropped") {
    val (b, aside) = committed()
    write(b, 1, 1L -> 99L)
    assert(at(b, 1).contains(99L) && at(b, 3).isEmpty)
    b.commit()
    b.putBack(aside)
    b.openForWrite(2)
    assert(at(b, 1).contains(11L) && at(b, 2).contains(20L) && at(b, 3).contains(30L))
    assert(b.rowCount == 3)
  }

  test("another attempt that counts takes its place") {
    val (b, _) = committed()
    write(b, 1, 4L -> 40L)
    b.commit()
    b.openForWrite(2)
    assert(at(b, 1).contains(10L) && at(b, 3).isEmpty && at(b, 4).contains(40L))
  }

  test("a version that was put back can be undone, set aside and snapshotted like any other") {
    val (b, aside) = committed()
    b.putBack(aside)
    val again = b.setAside()
    assert(b.setAside() == null)
    b.putBack(again)
    val delta = b.deltaBytes()
    val restored = backend()
    restored.restore(1, 0, Seq(segment(true, base(b))), everything)
    restored.applyDeltas(2, Seq(segment(false, delta)), everything)
    b.openForWrite(2)
    restored.openForWrite(2)
    assert(contents(b.family("default")) == contents(restored.family("default")))
  }

  test("changes of another version are refused") {
    val (b, aside) = committed()
    b.putBack(aside)
    b.openForWrite(2)
    intercept[IllegalStateException](b.putBack(aside))
  }

  test("changes of a state that was loaded anew since are refused") {
    val (b, aside) = committed()
    b.clear(1)
    intercept[IllegalStateException](b.putBack(aside))
  }

  test("a view of the folded version outlives setting aside, and no fold") {
    val b = backend()
    write(b, 0, 1L -> 10L)
    b.commit()
    write(b, 1, 1L -> 11L)
    b.commit()
    val view = b.reader("default", 1)
    val pending = b.reader("default", 2)
    val scan = view.iterator()
    val aside = b.setAside()
    b.openForWrite(1)
    put(b.family("default"), longs(1), longs(99))
    assert(java.util.Arrays.equals(get(view, longs(1)), longs(10)))
    assert(java.util.Arrays.equals(get(pending, longs(1)), longs(11)))
    assert(scan.advance() && !scan.advance())
    // Another attempt takes the place of this one, whose family is of no more use to anybody.
    val zombie = b.family("default")
    b.openForWrite(1)
    intercept[IllegalStateException](get(zombie, longs(1)))
    intercept[IllegalStateException](zombie.iterator())
    assert(java.util.Arrays.equals(get(view, longs(1)), longs(10)))
    b.discard()
    b.putBack(aside)
    b.fold()
    intercept[IllegalStateException](get(view, longs(1)))
    intercept[IllegalStateException](get(pending, longs(1)))
    intercept[IllegalStateException](scan.advance())
    intercept[IllegalStateException](b.putBack(aside))
    b.openForWrite(2)
    assert(at(b, 1).contains(11L))
  }

  test("a task that was given up writes to nothing") {
    val b = backend()
    write(b, 0, 1L -> 10L)
    val zombie = b.family("default")
    b.openForWrite(0)
    intercept[IllegalStateException](put(zombie, longs(7L), longs(70L)))
    // Even one that is past that check reaches only what nobody reads.
    zombie.writable = true
    put(zombie, longs(7L), longs(70L))
    put(b.family("default"), longs(2L), longs(20L))
    b.commit()
    b.openForWrite(1)
    assert(at(b, 7).isEmpty && at(b, 1).isEmpty && at(b, 2).contains(20L))
  }
}
