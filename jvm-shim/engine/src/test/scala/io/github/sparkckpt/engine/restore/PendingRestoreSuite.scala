// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.restore

import java.nio.ByteBuffer
import java.util.concurrent.{ConcurrentLinkedQueue, CountDownLatch, CyclicBarrier, Executors, TimeUnit}
import java.util.concurrent.atomic.AtomicReference
import java.util.zip.CRC32C

import scala.collection.mutable
import scala.util.Random

import io.github.sparkckpt.engine.backend.{ByKeyGroup, HashMapStateBackend}
import io.github.sparkckpt.engine.segment._
import io.github.sparkckpt.engine.support.{BackendTesting, ByteOrder, FirstWordPrefix}
import io.github.sparkckpt.engine.table.KeyGroupFunction
import org.scalatest.concurrent.Eventually._
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

/** Restores whose first access loads everything. */
class PendingRestoreSuite extends PendingRestoreTests(looksUp = false) {
  test("nothing is read until a key is wanted, and then everything, in one pass") {
    val chain = new Chain(rows = 20000, deltas = 2, seed = 1)
    val stored = chain.stored
    val backend = chain.opened(stored)
    assert(backend.isPending && backend.version == chain.version && backend.rowCount == chain.model.size)
    backend.openForWrite(chain.version)
    assert(stored.reads.isEmpty)
    val k = longs(7, 7)
    assert(ByteBuffer.wrap(get(backend.table("default"), k)) == chain.model.get(ByteBuffer.wrap(k)))
    assert(!backend.isPending && stored.reads == Seq(0, 1, 2) && stored.told == chain.model.size)
    assertSame(contents(backend.table("default")), chain.model)
    backend.close()
  }

  test("a state that is given up loads nothing") {
    val chain = new Chain(rows = 20000, deltas = 0, seed = 12)
    val stored = chain.stored
    val backend = chain.opened(stored)
    backend.openForWrite(chain.version)
    val table = backend.table("default")
    backend.close()
    intercept[TableRetiredException](get(table, longs(1, 1)))
    intercept[TableRetiredException](backend.loadRest())
    assert(stored.bytesRead == 0)
  }
}

/** Lookups of rows in a base without compression. */
class RowLoadsSuite extends RowLoadsTests(BlockCodec.Uncompressed) {

  /** The base of a chain with keys of one length, but with the keys of each block in reverse. */
  private def reversed(s: SegmentBytes): SegmentBytes = {
    val all = s.bytes.clone()
    val crc = new CRC32C
    s.info.offsets.zip(s.info.offsets.drop(1) :+ all.length.toLong).foreach { case (from, until) =>
      val section = from.toInt + SegmentFormat.HeaderBytes + 3 // after the name, which is empty, and the flags
      val layout = new SectionLayout(all, ByteBuffer.wrap(all).getInt(section), true, false, section + 4)
      val keys = all.slice(layout.keysAt, layout.keysAt + 16 * layout.rows).grouped(16).toSeq
      keys.reverse.flatten.toArray.copyToArray(all, layout.keysAt)
      crc.reset()
      crc.update(all, from.toInt, SegmentFormat.ChecksumAt)
      crc.update(all, from.toInt + SegmentFormat.HeaderBytes, (until - from).toInt - SegmentFormat.HeaderBytes)
      ByteBuffer.wrap(all).putInt(from.toInt + SegmentFormat.ChecksumAt, crc.getValue.toInt)
    }
    SegmentBytes(s.info, all)
  }

  test("rows in another order than their checkpoint says are damage") {
    val chain = new Chain(rows = 20000, deltas = 0, seed = 21)
    val backend = chain.opened(new Stored(true -> reversed(chain.segments.head._2)))
    backend.openForWrite(chain.version)
    val failure = intercept[RuntimeException] {
      for (i <- 0L until 60L) get(backend.table("default"), longs(i, i))
    }
    assert(failure.getMessage.contains("not in the order"))
    backend.close()
  }
}

/** Lookups of rows in compressed bases, whose blocks are cut into chunks. */
class Lz4RowLoadsSuite extends RowLoadsTests(BlockCodec.Lz4)

class ZstandardRowLoadsSuite extends RowLoadsTests(BlockCodec.Zstandard)

/** Restores that look rows up in a base in the order of hashes. */
abstract class RowLoadsTests(codec: BlockCodec) extends PendingRestoreTests(looksUp = true, codec) with ByKeyGroup {
  test("nothing is read until a key is wanted, and then little") {
    val chain = new Chain(rows = 50000, deltas = 3, seed = 1)
    val stored = chain.stored
    val backend = chain.opened(stored)
    assert(backend.isPending && backend.version == chain.version && backend.rowCount == chain.model.size)
    backend.openForWrite(chain.version)
    assert(stored.reads.isEmpty)
    val k = longs(7, 7)
    assert(ByteBuffer.wrap(get(backend.table("default"), k)) == chain.model.get(ByteBuffer.wrap(k)))
    val total = chain.segments.map(_._2.bytes.length.toLong).sum
    assert(stored.bytesRead > 0 && stored.bytesRead < total / 16)
    val before = stored.bytesRead
    assert(get(backend.table("default"), k) != null && stored.bytesRead == before)
    assert(backend.isPending && backend.rowCount == chain.model.size && stored.told == -1)
    backend.close()
  }

  test("once many rows are wanted, everything is loaded, in one pass") {
    val chain = new Chain(rows = 50000, deltas = 2, seed = 2)
    val stored = chain.stored
    val backend = chain.opened(stored)
    backend.openForWrite(chain.version)
    var i = 0L
    while (backend.isPending) {
      get(backend.table("default"), longs(i, i))
      i += 1
    }
    assert(i > 1 && i < 2000)
    assert(stored.told == chain.model.size)
    assertSame(contents(backend.table("default")), chain.model)
    backend.close()
  }

  test("a batch loads its rows only") {
    val chain = new Chain(rows = 100000, deltas = 3, seed = 1)
    val stored = chain.stored
    val backend = chain.opened(stored)
    backend.openForWrite(chain.version)
    for (i <- 0L until 150L) {
      val k = longs(i * 700, i * 700)
      assert(Option(get(backend.table("default"), k)).map(ByteBuffer.wrap) ==
        Option(chain.model.get(ByteBuffer.wrap(k))))
      put(backend.table("default"), k, longs(i))
    }
    assert(backend.isPending && stored.lookups > 100 && !stored.isClosed)
    assert(backend.memoryBytes < 1000000)
    backend.loadRest()
    assert(!backend.isPending && stored.isClosed && stored.told == chain.model.size)
    backend.close()
  }

  test("rows of different lengths, of one key, and none are looked up") {
    for (keys <- Seq(0, 1, 2, 700); wide <- Seq(0, 1, 2000)) {
      val chain = new Chain(keys, deltas = 0, seed = 20 + keys, wide)
      val backend = chain.opened(chain.stored)
      backend.openForWrite(chain.version)
      for (i <- 0L until keys + 3L) {
        val k = chain.key(i)
        val found = Option(get(backend.table("default"), k)).map(ByteBuffer.wrap)
        assert(found == Option(chain.model.get(ByteBuffer.wrap(k))), s"key $i of $keys")
      }
      assertSame(contents(backend.table("default")), chain.model)
      backend.close()
    }
  }

  test("a state that is given up loads nothing more") {
    val chain = new Chain(rows = 20000, deltas = 0, seed = 12)
    val stored = chain.stored
    val backend = chain.opened(stored)
    backend.openForWrite(chain.version)
    val table = backend.table("default")
    get(table, longs(1, 1))
    val before = stored.bytesRead
    backend.close()
    intercept[TableRetiredException](for (i <- 0L until 100L) get(table, longs(i, i)))
    intercept[TableRetiredException](backend.loadRest())
    assert(stored.bytesRead == before)
  }
}

/** Restores that leave rows in their segments. */
abstract class PendingRestoreTests(looksUp: Boolean, codec: BlockCodec = BlockCodec.Uncompressed)
    extends AnyFunSuite with BackendTesting {
  protected val K = 64
  protected val groups = groupsByHash(K)

  /** Segments in memory, with counts of what was read. */
  protected class Stored(segments: (Boolean, SegmentBytes)*) extends StoredSegments {
    val reads = mutable.Buffer.empty[Int]
    var bytesRead = 0L
    var told = -1L
    var lookups = 0
    var isClosed = false

    override val keyGroups: IndexedSeq[Array[Int]] = segments.map(_._2.info.keyGroups).toIndexedSeq

    override def reading(wanted: Seq[Int])(body: (Int => StateSegment) => Unit): Unit = {
      reads ++= wanted
      body(wanted.map { i =>
        val segment = open(i)
        i -> (if (byKeyGroup) segment else segment.copy(keyGroups = Array.emptyIntArray))
      }.toMap)
    }

    private def open(i: Int): StateSegment = {
      val (isBase, s) = segments(i)
      val source = new ByteSource {
        override def name: String = s"segment $i"
        override def length: Long = s.bytes.length
        override def close(): Unit = ()
        override def readFully(position: Long, buffer: Array[Byte], from: Int, count: Int): Unit = {
          assert(!isClosed)
          bytesRead += count
          System.arraycopy(s.bytes, position.toInt, buffer, from, count)
        }
      }
      StateSegment(isBase, source, s.info.offsets, keyGroups = s.info.keyGroups)
    }

    override def lookingUp(segment: Int)(body: StateSegment => Unit): Unit = {
      lookups += 1
      body(open(segment))
    }

    override def close(): Unit = isClosed = true

    override def unreadable(cause: Throwable): Throwable = new RuntimeException(s"told: ${cause.getMessage}", cause)

    override def loaded(rows: Long): Unit = told = rows
  }

  /** A base, then deltas with new values, removals and new keys; and the content. */
  protected class Chain(rows: Int, deltas: Int, seed: Int, widest: Int = 0) {
    val r = new Random(seed)
    val model = new Model
    private val source = newBackend(K, codec = codec)
    source.declareFamily("default", groups)
    private val found = mutable.Buffer.empty[(Boolean, SegmentBytes)]
    private def set(i: Long): Unit = {
      val (k, v) = (key(i), randomBytes(r, 8 * r.nextInt(6)))
      put(source.table("default"), k, v)
      model.put(ByteBuffer.wrap(k), ByteBuffer.wrap(v))
    }

    /** A key of two words, or of one to `widest` words. */
    def key(i: Long): Array[Byte] =
      if (widest == 0) longs(i, i) else longs(Seq.fill(1 + (i * i % widest).toInt)(i): _*)

    source.openForWrite(0)
    for (i <- 0 until rows) set(i)
    source.commit()
    source.fold()
    found += (true -> base(source))
    for (d <- 0 until deltas) {
      source.openForWrite(1L + d)
      for (_ <- 0 until rows / (if (looksUp) 400 else 10) + 1) {
        val i = r.nextInt(rows * 5 / 4).toLong
        if (r.nextInt(3) > 0) set(i)
        else {
          remove(source.table("default"), key(i))
          model.remove(ByteBuffer.wrap(key(i)))
        }
      }
      source.commit()
      found += (false -> source.deltaBytes())
      source.fold()
    }
    val version: Long = 1L + deltas
    val segments: Seq[(Boolean, SegmentBytes)] = found.toSeq
    source.close()

    def stored = new Stored(segments: _*)

    def budget: LookupBudget =
      if (!looksUp) LookupBudget.Zero else LookupBudget(math.max(1, model.size / 8), 25, model.size / K / 32)

    def opened(of: StoredSegments, checkTask: () => Unit = () => ()): HashMapStateBackend = {
      val backend = newBackend(K, checkTask = checkTask)
      backend.declareFamily("default", groups)
      backend.restoreLater(version, model.size, of, budget, "id")
      backend.declareFamily("default", groups)
      backend
    }

    def eager(): HashMapStateBackend = {
      val backend = newBackend(K)
      backend.declareFamily("default", groups)
      backend.restore(version, model.size, segments.map { case (isBase, s) => segment(isBase, s) }, everything, "id")
      backend
    }
  }

  private def groupOf(i: Long): Int = {
    val k = longs(i, i)
    groups.keyGroup(k, Start, k.length)
  }

  private val uses = Seq[(String, HashMapStateBackend => Unit)](
    "an iterator" -> (backend => backend.table("default").iterator()),
    "a reader's iterator" -> (backend => backend.reader("default", backend.foldedVersion).iterator()),
    "a snapshot" -> (backend => backend.snapshotBase().close()),
    "the rest" -> (backend => backend.loadRest()),
    "another access" -> { backend =>
      backend.discard()
      backend.declareFamily("default", groups, new ByteOrder)
    },
    "a fold" -> { backend =>
      put(backend.table("default"), longs(1, 1), longs(9))
      backend.commit()
      backend.fold()
    },
    "the next batch" -> { backend =>
      backend.commit()
      backend.openForWrite(backend.version)
    },
    "the end of the family" -> (backend => backend.dropFamily("default")))

  for ((name, use) <- uses) test(s"$name loads everything, also what a batch has not touched") {
    val chain = new Chain(rows = 20000, deltas = 2, seed = 4)
    val backend = chain.opened(chain.stored)
    backend.openForWrite(chain.version)
    var rows = chain.model.size
    if (looksUp && remove(backend.table("default"), longs(2, 2))) rows -= 1
    assert(backend.isPending && backend.rowCount == rows)
    use(backend)
    assert(!backend.isPending)
    backend.close()
  }

  test("undone, repeated and abandoned batches leave the rest where it is") {
    val chain = new Chain(rows = 20000, deltas = 2, seed = 5)
    val stored = chain.stored
    val backend = chain.opened(stored)
    val model = copyOf(chain.model)
    def set(i: Long, value: Long): Unit = put(backend.table("default"), longs(i, i), longs(value))
    backend.openForWrite(chain.version)
    val abandoned = backend.table("default")
    set(1, 1)
    backend.discard()
    intercept[TableRetiredException](get(abandoned, longs(3, 3)))
    backend.openForWrite(chain.version)
    set(1, 2)
    backend.commit("a")
    backend.reopen()
    set(1, 3)
    backend.commit("b")
    assert(backend.undoCommit())
    assert(backend.undoCommit())
    backend.openForWrite(chain.version)
    set(1, 4)
    model.put(ByteBuffer.wrap(longs(1, 1)), ByteBuffer.wrap(longs(4)))
    backend.commit("c")
    assert(backend.isPending == looksUp && backend.rowCount == model.size)
    val other = newBackend(K)
    other.declareFamily("default", groups)
    val deltas = chain.segments :+ (false -> backend.deltaBytes())
    other.restore(chain.version + 1, 0, deltas.map { case (isBase, s) => segment(isBase, s) }, everything)
    assertSame(contents(other.table("default")), model)
    backend.openForWrite(chain.version + 1)
    assertSame(contents(backend.table("default")), model)
    Seq(backend, other).foreach(_.close())
  }

  for (seed <- 1 to 12) test(s"a random batch agrees with that of a state that is all there, seed $seed") {
    val chain = new Chain(rows = 500 + 300 * seed, deltas = seed % 4, seed)
    val r = new Random(seed)
    val (later, eager) = (chain.opened(chain.stored), chain.eager())
    val both = Seq(later, eager)
    var version = chain.version
    for (_ <- 0 until 4) {
      both.foreach(_.openForWrite(version))
      // At first few keys, so that much is still in the segments.
      val views = both.map(_.reader("default", version))
      for (_ <- 0 until r.nextInt(400)) {
        val i = r.nextInt(if (r.nextInt(8) == 0) 6000 else 12).toLong
        val k = longs(i, i)
        def same[A](of: HashMapStateBackend => A): Unit = {
          val found = both.map(of)
          assert(found.head == found.last)
        }
        r.nextInt(60) match {
          case 0 => assertSame(contents(later.table("default")), contents(eager.table("default")))
          case x if x < 20 => same(b => Option(get(b.table("default"), k)).map(ByteBuffer.wrap))
          case x if x < 25 => same(b => b.table("default").contains(k, Start, k.length))
          case x if x < 30 =>
            assert(views.map(v => Option(get(v, k)).map(ByteBuffer.wrap)).distinct.size == 1)
          case x if x < 40 => same(b => remove(b.table("default"), k))
          case _ =>
            val v = randomBytes(r, 8 * r.nextInt(6))
            both.foreach(b => put(b.table("default"), k, v))
        }
        same(_.rowCount)
      }
      same(both)(_.rowsUpdated)
      same(both)(_.rowsRemoved)
      if (r.nextInt(4) == 0) both.foreach(_.discard())
      else {
        both.foreach(_.commit("next"))
        val Seq(a, b) = both.map(_.deltaBytes())
        assert(java.util.Arrays.equals(a.bytes, b.bytes))
        if (r.nextInt(3) == 0) both.foreach(_.undoCommit()) else version += 1
      }
    }
    both.foreach(_.openForWrite(version))
    assertSame(contents(later.table("default")), contents(eager.table("default")))
    assert(base(later).info.entries == base(eager).info.entries)
    both.foreach(_.close())
  }

  private def same[A](all: Seq[HashMapStateBackend])(of: HashMapStateBackend => A): Unit =
    assert(all.map(of).distinct.size == 1)

  test("values that were handed out stay as they are while others are loaded") {
    val chain = new Chain(rows = 20000, deltas = 3, seed = 6)
    val backend = chain.opened(chain.stored)
    backend.openForWrite(chain.version)
    val reader = backend.reader("default", chain.version)
    val held = mutable.Buffer.empty[(Array[Byte], AnyRef, Long, Int)]
    for (i <- 0L until 3000L) {
      val k = longs(i, i)
      if (reader.get(k, Start, k.length)) {
        held += ((k, reader.valueBase, reader.valueOffset, reader.valueLength))
      }
    }
    backend.loadRest()
    assert(held.size > 2000)
    held.foreach { case (k, at, offset, length) =>
      assert(ByteBuffer.wrap(bytes(at, offset, length)) == chain.model.get(ByteBuffer.wrap(k)))
    }
    backend.close()
  }

  test("readers and the writer of a batch may wait for rows at the same time, beside a load of everything") {
    for (seed <- 1 to 5) {
      val chain = new Chain(rows = 30000, deltas = 2, seed)
      val backend = chain.opened(chain.stored)
      backend.openForWrite(chain.version)
      val threads = Executors.newFixedThreadPool(5)
      val barrier = new CyclicBarrier(5)
      val error = new AtomicReference[Throwable]
      def run(body: => Unit): Unit = threads.execute { () =>
        try {
          barrier.await(1, TimeUnit.MINUTES)
          body
        } catch { case e: Throwable => error.compareAndSet(null, e) }
      }
      val readers = Seq.fill(2)(backend.reader("default", chain.version))
      for ((reader, n) <- readers.zipWithIndex) run {
        val r = new Random(seed * 10 + n)
        for (_ <- 0 until 3000) {
          val i = r.nextInt(36000).toLong
          val found = get(reader, longs(i, i))
          assert(Option(found).map(ByteBuffer.wrap) == Option(chain.model.get(ByteBuffer.wrap(longs(i, i)))))
        }
      }
      run {
        for (i <- 0L until 3000L) put(backend.table("default"), longs(i, i), longs(i))
      }
      run {
        for (_ <- 0 until 50) {
          backend.evict()
          assert(backend.rowCount > 0 && backend.memoryBytes >= 0)
        }
      }
      run {
        Thread.sleep(5)
        backend.loadRest()
      }
      threads.shutdown()
      assert(threads.awaitTermination(5, TimeUnit.MINUTES))
      Option(error.get()).foreach(throw _)
      val model = copyOf(chain.model)
      for (i <- 0L until 3000L) model.put(ByteBuffer.wrap(longs(i, i)), ByteBuffer.wrap(longs(i)))
      assertSame(contents(backend.table("default")), model)
      backend.close()
    }
  }

  for (interrupts <- Seq(true, false)) {
    test(s"a task that is killed does not wait for a load by another thread, interrupted: $interrupts") {
      val chain = new Chain(rows = 5000, deltas = 1, seed = 15)
      val (begun, end) = (new CountDownLatch(1), new CountDownLatch(1))
      val killed = new AtomicReference[Exception]
      val stored = new Stored(chain.segments: _*) {
        override def reading(wanted: Seq[Int])(body: (Int => StateSegment) => Unit): Unit = {
          begun.countDown()
          end.await()
          super.reading(wanted)(body)
        }
      }
      val backend = chain.opened(stored, checkTask = () => Option(killed.get).foreach(throw _))
      backend.openForWrite(chain.version)
      val loading = new Thread(() => backend.loadRest())
      loading.start()
      assert(begun.await(5, TimeUnit.MINUTES))
      val uses = Seq[() => Unit](
        () => get(backend.table("default"), longs(1, 1)),
        () => put(backend.table("default"), longs(1, 1), longs(1)),
        () => backend.reader("default", chain.version).iterator(),
        () => backend.loadRest())
      val errors = new ConcurrentLinkedQueue[Throwable]
      val tasks = uses.map { use =>
        val task = new Thread(() => {
          try use() catch { case e: Throwable => errors.add(e) }
        })
        task.setDaemon(true)
        task.start()
        task
      }
      try {
        eventually(timeout(5.minutes)) {
          assert(tasks.forall(_.getState.name.contains("WAITING")))
        }
        killed.set(new IllegalStateException("killed"))
        if (interrupts) tasks.foreach(_.interrupt())
        eventually(timeout(1.minute))(assert(errors.size == tasks.size))
        errors.forEach { e =>
          assert((e eq killed.get) || (interrupts && e.isInstanceOf[InterruptedException]))
        }
      } finally end.countDown()
      loading.join()
      assert(!backend.isBroken)
      assertSame(contents(backend.table("default")), chain.model)
      backend.close()
    }
  }

  /** The chain with a byte of the base's block of a key group changed. */
  private def damaged(chain: Chain, group: Int): Stored = {
    val (_, s) = chain.segments.head
    val at = s.info.offsets(s.info.keyGroups.indexOf(group)).toInt + SegmentFormat.HeaderBytes + 20
    val copy = s.bytes.clone()
    copy(at) = (copy(at) ^ 8).toByte
    new Stored((true -> SegmentBytes(s.info, copy)) +: chain.segments.tail: _*)
  }

  test("the first reader of damaged rows finds the damage, and then nothing can be read or committed") {
    val chain = new Chain(rows = 20000, deltas = 1, seed = 8)
    val backend = chain.opened(damaged(chain, groupOf(5)))
    val other = (6L until 1000L).find(groupOf(_) != groupOf(5)).get
    backend.openForWrite(chain.version)
    if (looksUp) put(backend.table("default"), longs(other, other), longs(1))
    assert(!backend.isBroken)
    val failure = intercept[RuntimeException](get(backend.table("default"), longs(5, 5)))
    assert(failure.getMessage.startsWith("told: ") && failure.getCause.isInstanceOf[StateStreamDamagedException])
    assert(intercept[RuntimeException](get(backend.table("default"), longs(1, 1))) eq failure)
    assert(backend.isBroken && !backend.canServe(chain.version))
    assert(intercept[RuntimeException](backend.commit("x")) eq failure)
    intercept[RuntimeException](backend.snapshotBase())
    backend.discard()
    intercept[IllegalStateException](backend.openForWrite(chain.version))
    // And everything starts anew.
    backend.restoreLater(chain.version, chain.model.size, chain.stored, chain.budget, "id")
    backend.openForWrite(chain.version)
    assertSame(contents(backend.table("default")), chain.model)
    backend.close()
  }

  test("damage that the batch does not touch is found by the load of the rest") {
    val chain = new Chain(rows = 20000, deltas = 1, seed = 9)
    val backend = chain.opened(damaged(chain, groupOf(5)))
    val other = (6L until 1000L).find(groupOf(_) != groupOf(5)).get
    backend.openForWrite(chain.version)
    if (looksUp) put(backend.table("default"), longs(other, other), longs(1))
    backend.commit("x")
    intercept[StateStreamDamagedException](backend.openForWrite(chain.version + 1))
    assert(backend.isBroken)
    backend.close()
  }

  test("a block of another key group than the checkpoint says is damage") {
    val chain = new Chain(rows = 20000, deltas = 0, seed = 10)
    val s = chain.segments.head._2
    val swapped = s.info.offsets.clone()
    swapped(0) = s.info.offsets(1)
    val backend = chain.opened(new Stored(true -> SegmentBytes(s.info.copy(offsets = swapped), s.bytes)))
    intercept[StateStreamDamagedException](backend.loadRest())
    backend.close()
  }

  test("rows in key groups where no reader looks are an error, not lost") {
    val chain = new Chain(rows = 20000, deltas = 0, seed = 11)
    val backend = newBackend(K)
    val others: KeyGroupFunction = (_: AnyRef, _: Long, _: Int) => 3
    backend.declareFamily("default", others)
    backend.restoreLater(chain.version, chain.model.size, chain.stored, chain.budget, "id")
    backend.openForWrite(chain.version)
    val failure = intercept[RuntimeException] {
      for (i <- 0L until 20000L) get(backend.table("default"), longs(i, i))
      backend.loadRest()
    }
    assert(failure.isInstanceOf[MisplacedRowException] || failure.getCause.isInstanceOf[MisplacedRowException])
    backend.close()
  }

  test("lists, and several column families, cannot wait") {
    val chain = new Chain(rows = 100, deltas = 0, seed = 13)
    val lists = newBackend(K)
    lists.declareFamily("default", groups, multiValue = true)
    intercept[IllegalStateException](lists.restoreLater(1, 1, chain.stored, chain.budget))
    val families = newBackend(K)
    families.declareFamily("default", groups)
    families.declareFamily("more", groups)
    intercept[IllegalStateException](families.restoreLater(1, 1, chain.stored, chain.budget))
    Seq(lists, families).foreach(_.close())
  }

  for ((name, access) <- Seq("prefix" -> new FirstWordPrefix, "ordered" -> new ByteOrder)) {
    test(s"a $name family is loaded with its first access") {
      val chain = new Chain(rows = 3000, deltas = 2, seed = 14)
      val backend = newBackend(K)
      backend.declareFamily("default", groups, access)
      backend.restoreLater(chain.version, chain.model.size, chain.stored, chain.budget, "id")
      backend.openForWrite(chain.version)
      val prefix = longs(4)
      val expected = copyOf(chain.model)
      expected.keySet.removeIf(k => ByteBuffer.wrap(k.array).getLong != 4)
      assertSame(drain(backend.table("default").prefixScan(prefix, Start, 8)), expected)
      assert(!backend.isPending)
      assertSame(contents(backend.table("default")), chain.model)
      backend.close()
    }
  }
}
