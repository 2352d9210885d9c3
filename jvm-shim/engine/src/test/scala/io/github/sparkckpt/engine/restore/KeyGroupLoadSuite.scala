// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.restore

import java.nio.ByteBuffer

import scala.collection.mutable
import scala.util.Random

import io.github.sparkckpt.engine.backend.{ByKeyGroup, HashMapStateBackend}
import io.github.sparkckpt.engine.segment.{ByteSource, RestoreFilter, StateSegment, StateStreamDamagedException}
import org.scalatest.funsuite.AnyFunSuite

class KeyGroupLoadSuite extends AnyFunSuite with ByKeyGroup {
  private val K = 32

  /** A base, and deltas with new values, removals and new keys. */
  private class History(seed: Int, families: Seq[String]) {
    private val r = new Random(seed)
    private val groups = groupsByHash(K)
    val models: Map[String, Model] = families.map(_ -> new Model).toMap
    private val source = newBackend(K)
    families.foreach(source.declareFamily(_, groups))
    val segments: mutable.Buffer[StateSegment] = mutable.Buffer.empty
    batch(4000)
    source.fold()
    segments += segment(isBase = true, base(source))
    for (_ <- 0 until 5) {
      batch(1 + r.nextInt(1500))
      segments += segment(isBase = false, source.deltaBytes())
      source.fold()
    }
    val version: Long = source.version
    source.close()

    private def batch(changes: Int): Unit = {
      source.openForWrite(source.version)
      for (name <- families; _ <- 0 until changes) {
        val k = longs(Seq.fill(1 + r.nextInt(2))(r.nextInt(6000).toLong): _*)
        if (r.nextInt(4) == 0) {
          remove(source.table(name), k)
          models(name).remove(ByteBuffer.wrap(k))
        } else {
          val v = randomBytes(r, 8 * r.nextInt(5))
          put(source.table(name), k, v)
          models(name).put(ByteBuffer.wrap(k), ByteBuffer.wrap(v))
        }
      }
      source.commit()
    }

    def restored(of: Seq[StateSegment] = segments.toSeq, filter: RestoreFilter = everything): HashMapStateBackend = {
      val backend = newBackend(K)
      families.foreach(backend.declareFamily(_, groups))
      backend.restore(version, models.values.map(_.size).sum, of, filter)
      backend
    }
  }

  for (seed <- 1 to 6; families <- Seq(Seq("default"), Seq("a", "b", "c"))) {
    test(s"deltas change what bases and earlier deltas have, ${families.size} families, seed $seed") {
      val history = new History(seed, families)
      assert(KeyGroupLoad.isUseful(history.segments.toSeq))
      val backend = history.restored()
      families.foreach(name => assertSame(contents(backend.table(name)), history.models(name), name))
      assert(backend.rowCount == history.models.values.map(_.size).sum)
      // Further batches find each key.
      backend.openForWrite(history.version)
      families.foreach { name =>
        history.models(name).forEach { (k, v) =>
          assert(ByteBuffer.wrap(get(backend.table(name), k.array)) == v)
          assert(remove(backend.table(name), k.array))
        }
      }
      backend.commit()
      backend.fold()
      assert(backend.rowCount == 0)
      backend.close()
    }
  }

  test("each segment is read in order, and each byte about once") {
    val history = new History(1, Seq("default"))
    val positions = mutable.Map.empty[Int, mutable.Buffer[Long]]
    var bytes = 0L
    val counted = history.segments.zipWithIndex.map { case (s, i) =>
      s.copy(source = new ByteSource {
        override def name: String = s.source.name
        override def length: Long = s.source.length
        override def close(): Unit = ()
        override def readFully(position: Long, buffer: Array[Byte], from: Int, count: Int): Unit = {
          positions.getOrElseUpdate(i, mutable.Buffer.empty) += position
          bytes += count
          s.source.readFully(position, buffer, from, count)
        }
      })
    }
    history.restored(counted.toSeq).close()
    assert(positions.size == counted.size)
    positions.values.foreach(p => assert(p == p.sorted))
    assert(bytes < counted.map(_.source.length).sum * 5 / 4)
  }

  test("a block of another key group than that of its segment, or of none that may be there, is damage") {
    val history = new History(2, Seq("default"))
    val wrong = history.segments.toSeq.updated(1, {
      val s = history.segments(1)
      s.copy(keyGroups = s.keyGroups.updated(0, s.keyGroups(0) + 1))
    })
    val error = intercept[StateStreamDamagedException](history.restored(wrong))
    assert(error.what.contains("unexpected key group"))
    val other = intercept[StateStreamDamagedException](history.restored(filter = _ < K / 2))
    assert(other.what.contains("unexpected key group"))
  }

  test("segments without key groups, a single one, or bases alone are loaded one after another") {
    val segments = new History(3, Seq("default")).segments.toSeq
    assert(!KeyGroupLoad.isUseful(segments.take(1)))
    assert(!KeyGroupLoad.isUseful(segments.updated(2, segments(2).copy(keyGroups = Array.emptyIntArray))))
    assert(!KeyGroupLoad.isUseful(Seq(segments.head, segments.head)))
  }
}
