// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

import java.nio.ByteBuffer
import java.nio.file.{Files, Path}
import java.util.UUID
import java.util.concurrent.atomic.{AtomicBoolean, AtomicReference}

import scala.jdk.CollectionConverters._
import scala.util.Random

import io.github.sparkckpt.engine.pages.{LocalTier, MemoryBudget, RecordPages}
import io.github.sparkckpt.engine.restore.{LookupBudget, StoredSegments}
import io.github.sparkckpt.engine.segment.{SegmentBytes, StateSegment}
import io.github.sparkckpt.engine.support.BackendTesting
import org.scalatest.funsuite.AnyFunSuite

/**
 * Random batches on a store that a restore has left in its segments, with a small memory budget, beside a thread that
 * loads the rest, sheds, takes snapshots and asks for figures at any time; compared with a map after each step.
 *
 * With `SPARK_CKPT_TEST_SECONDS=600` in the environment (`make fuzz-state`), it runs new cases for so long. With
 * `SPARK_CKPT_TEST_SEED=7`, it begins with that case.
 */
class LaterStateModelSuite extends AnyFunSuite with BackendTesting {
  import LaterStateModelSuite._

  test("random batches beside loads, evictions and snapshots agree with a map") {
    val end = System.nanoTime() + seconds * 1000000000L
    var seed = firstSeed
    var cases = 0
    while (if (seconds > 0) System.nanoTime() < end else cases < Cases) {
      withClue(s"case $seed (SPARK_CKPT_TEST_SEED=$seed): ")(new Case(seed).run())
      seed += 1
      cases += 1
    }
  }

  private final class Case(seed: Long) {
    private val r = new Random(seed)
    private val K = Seq(1, 2, 8, 64)(r.nextInt(4))
    private val groups = groupsByHash(K)
    private val rows = 200 + r.nextInt(6000)
    private val variousKeys = r.nextBoolean()
    private val valueKind = r.nextInt(3)
    private val model = new Model
    private val directory = Files.createTempDirectory("later-state")
    private val chain = written()
    private val version = chain.size.toLong
    private val backend = new HashMapStateBackend(K, false, if (r.nextInt(5) == 0) null else newTier())

    private def key(i: Int): Array[Byte] = {
      val bytes = ByteBuffer.allocate(if (variousKeys) 8 + 8 * (i % 4) else 16)
      bytes.putLong(i * 31L)
      bytes.array
    }

    private def newValue(): Array[Byte] = randomBytes(r, valueKind match {
      case 0 => 24
      case 1 => r.nextInt(60)
      case _ => if (r.nextInt(200) == 0) 9000 + r.nextInt(9000) else 8 * r.nextInt(12)
    })

    private def set(f: HashMapTable, i: Int, in: Model): Unit = {
      val (k, v) = (key(i), newValue())
      put(f, k, v)
      in.put(ByteBuffer.wrap(k), ByteBuffer.wrap(v))
    }

    /** A base, or the changes of the first batch in its place, and some deltas. */
    private def written(): Seq[(Boolean, SegmentBytes)] = {
      val source = new HashMapStateBackend(K)
      val f = source.declareFamily("default", groups)
      source.openForWrite(0)
      (0 until rows).foreach(set(f, _, model))
      source.commit()
      val first = if (r.nextBoolean()) Some(source.deltaBytes()) else None
      source.fold()
      val whole = first.fold(true -> base(source))(false -> _)
      whole +: (1 to r.nextInt(4)).map { d =>
        source.openForWrite(d.toLong)
        val table = source.table("default")
        (0 to r.nextInt(1 + rows / 20)).foreach { _ =>
          val i = r.nextInt(rows + 200)
          if (r.nextInt(3) > 0) set(table, i, model)
          else {
            remove(table, key(i))
            model.remove(ByteBuffer.wrap(key(i)))
          }
        }
        source.commit()
        false -> source.deltaBytes()
      }
    }

    private def newTier() = new LocalTier(
      Seq(1000L, 60000L, 300000L)(r.nextInt(3)), new MemoryBudget,
      () => directory.resolve(UUID.randomUUID().toString),
      maxPageWords = Seq(128, 1024, RecordPages.MaxPageWords)(r.nextInt(3)))

    private def stored: StoredSegments = new StoredSegments {
      private def open(i: Int): StateSegment =
        segment(chain(i)._1, chain(i)._2).copy(keyGroups = chain(i)._2.info.keyGroups)
      override val keyGroups: IndexedSeq[Array[Int]] = chain.map(_._2.info.keyGroups).toIndexedSeq
      override def reading(wanted: Seq[Int])(body: (Int => StateSegment) => Unit): Unit =
        body(wanted.map(i => i -> open(i)).toMap)
      override def lookingUp(i: Int)(body: StateSegment => Unit): Unit = body(open(i))
      override def close(): Unit = ()
      override def unreadable(cause: Throwable): Throwable = cause
      override def loaded(rows: Long): Unit = assert(rows == model.size)
    }

    def run(): Unit = {
      backend.declareFamily("default", groups)
      val looksUp = r.nextInt(8) != 0 && chain.head._2.info.isOrdered
      val budget = if (looksUp) LookupBudget(rows / 8, 25, rows / K / 32) else LookupBudget.Zero
      backend.restoreLater(version, model.size, stored, budget)
      val beside = new Beside
      beside.start()
      try {
        val last = (0 to r.nextInt(4)).foldLeft(version)((v, _) => batch(v))
        backend.openForWrite(last)
        assertSame(contents(backend.table("default")), model)
        assertSame(contents(backend.reader("default", last)), model)
        val again = new HashMapStateBackend(K)
        again.declareFamily("default", groups)
        again.restore(last, 0, Seq(segment(isBase = true, base(backend))), everything)
        assertSame(contents(again.reader("default", last)), model)
      } finally {
        beside.end()
        backend.close()
        delete(directory)
      }
    }

    /** A batch, and attempts of it that do not count; the next version. */
    private def batch(of: Long): Long = {
      var next = of
      while (next == of) {
        backend.openForWrite(of)
        val changed = copyOf(model)
        val view = if (r.nextBoolean()) backend.reader("default", of) else null
        (0 until r.nextInt(300)).foreach(_ => step(backend.table("default"), view, changed))
        assert(backend.rowCount == changed.size)
        if (r.nextInt(4) == 0) {
          if (r.nextBoolean()) backend.discard()
          else {
            backend.commit("undone")
            assert(backend.undoCommit())
          }
        } else {
          backend.commit(s"v$of")
          model.clear()
          model.putAll(changed)
          next = of + 1
        }
      }
      next
    }

    private def step(table: HashMapTable, view: TableReader, changed: Model): Unit = {
      val i = r.nextInt(rows + 300)
      val k = key(i)
      val wrapped = ByteBuffer.wrap(k)
      r.nextInt(if (r.nextInt(60) == 0) 8 else 6) match {
        case 0 | 1 =>
          assert(Option(get(table, k)).map(ByteBuffer.wrap) == Option(changed.get(wrapped)))
          if (r.nextBoolean()) set(table, i, changed)
        case 2 =>
          if (view != null) assert(Option(get(view, k)).map(ByteBuffer.wrap) == Option(model.get(wrapped)))
          if (r.nextBoolean()) set(table, i, changed)
        case 3 => set(table, i, changed)
        case 4 => assert(remove(table, k) == (changed.remove(wrapped) != null))
        case 5 => assert(table.contains(k, Start, k.length) == changed.containsKey(wrapped))
        case _ => assertSame(contents(table), changed)
      }
    }

    /** What other threads of an executor do with a store at any time. */
    private final class Beside {
      private val stop = new AtomicBoolean
      private val failure = new AtomicReference[Throwable]
      private val thread = new Thread(() => try act() catch { case e: Throwable => failure.set(e) })

      def start(): Unit = thread.start()

      private def act(): Unit = {
        val q = new Random(seed)
        Thread.sleep(0, q.nextInt(900000))
        while (!stop.get()) {
          q.nextInt(4) match {
            case 0 if q.nextInt(5) == 0 => backend.loadRest()
            case 1 => backend.evict()
            case 2 if q.nextInt(6) == 0 =>
              val snapshot = backend.snapshotBase()
              try snapshot.write(java.io.OutputStream.nullOutputStream()) finally snapshot.close()
            case _ => assert(backend.memoryBytes >= 0 && backend.localBytes >= 0)
          }
          Thread.sleep(0, 1 + q.nextInt(400000))
        }
      }

      def end(): Unit = {
        stop.set(true)
        thread.join()
        Option(failure.get()).foreach(throw _)
      }
    }
  }

  private def delete(directory: Path): Unit = {
    val files = Files.list(directory)
    try files.iterator.asScala.foreach(Files.delete(_)) finally files.close()
    Files.delete(directory)
  }
}

object LaterStateModelSuite {

  /** Cases of a short run, which are the same in every run. */
  private final val Cases = 60

  private def seconds: Long = sys.env.get("SPARK_CKPT_TEST_SECONDS").fold(0L)(_.toLong)

  private def firstSeed: Long = sys.env.get("SPARK_CKPT_TEST_SEED").flatMap(_.toLongOption)
    .getOrElse(if (seconds > 0) System.nanoTime() >>> 16 else 1L)
}
