// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compaction

import java.nio.file.Files
import java.util.concurrent.{CountDownLatch, TimeUnit}

import io.github.sparkckpt.engine.backend.HashMapStateBackend
import io.github.sparkckpt.engine.compaction.{BaseSnapshot, DeferredSnapshot, NoLongerNeededException}
import io.github.sparkckpt.engine.segment._
import io.github.sparkckpt.uncaught.UncaughtErrorsReporter
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.concurrent.Eventually._
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.ckpt.files.{NewSegments, StateFiles}
import org.apache.spark.sql.ckpt.protocol._
import org.apache.spark.unsafe.Platform
import org.apache.spark.util.Utils

class BaseSnapshotsSuite extends AnyFunSuite {
  private val due = CompactionRequest.Base
  private val required = CompactionRequest.RequiredBase
  private val directory = Utils.createTempDir(namePrefix = "base-snapshots").toPath
  private val files = new StateFiles(new Path(directory.toUri), new Configuration())

  /** Bases that this function writes. */
  private class Bases(body: => Unit, ackThreshold: Long = 1000)
      extends BaseSnapshots("partition 3", files, () => ackThreshold) {
    override protected def write(snapshot: BaseSnapshot, pass: () => Unit): SegmentRef = {
      body
      super.write(snapshot, pass)
    }
  }

  private def snapshot(stateId: String): BaseSnapshot = {
    val backend = new HashMapStateBackend(4)
    backend.restore(0, 0, Nil, (_: Int) => true, stateId)
    backend.snapshotBase()
  }

  private def written(bases: BaseSnapshots): Option[ReadyBase] =
    bases.forAck(snapshot("a")).map(_.asInstanceOf[ReadyBase])

  /** A request for a merge of two deltas of one key in each key group. */
  private lazy val merge: CompactionRequest = mergeFrom(1)

  private def mergeFrom(first: Int, keyGroups: Int = 1): CompactionRequest = {
    val backend = new HashMapStateBackend(4)
    val family = backend.declareFamily("default", (key, offset, _) => Platform.getByte(key, offset) - 1)
    (1 until first).foreach { version =>
      backend.openForWrite(version - 1)
      backend.commit()
    }
    val deltas = (first to first + 1).map { version =>
      backend.openForWrite(version - 1)
      (1 to keyGroups).foreach { first =>
        val key = Array.fill[Byte](8)(first.toByte)
        family.put(key, Platform.BYTE_ARRAY_OFFSET, 8, key, Platform.BYTE_ARRAY_OFFSET, 8)
      }
      backend.commit()
      NewSegments.inline(version, version, backend.deltaBytes())
    }
    CompactionRequest.merge(deltas, "digest")
  }

  /** Number of entries of a delta with one key group. */
  private def entries(delta: SegmentRef): Int = {
    val source = files.source(delta)
    val opened = StateSegment(isBase = false, source, delta.offsets)
    try DeltaEntries.read(opened, delta.version, "default").size finally source.close()
  }

  private def ready(bases: BaseSnapshots): ReadySegment = {
    eventually(timeout(5.minutes))(assert(bases.isReady))
    bases.forAck(snapshot("a")).get
  }

  private def merged(bases: BaseSnapshots): ReadyMerge = ready(bases).asInstanceOf[ReadyMerge]

  for (limit <- Seq(1000L, 0L)) {
    test(s"deltas are merged in the background, with $limit bytes in the ack") {
      val bases = new Bases((), limit)
      bases.follow(merge, snapshot("a"))
      val ready = merged(bases)
      assert(ready.digest == "digest" && entries(ready.segment) == 1)
      assert(ready.segment.path.isEmpty == (limit > 0) && bases.isIdle)
      ready.segment.path.foreach { name =>
        assert(files.length(name) == ready.segment.size)
        files.delete(name)
      }
    }
  }

  test("a merge that fails leaves the chain as it is, and says why") {
    val bases = new Bases(())
    val missing = merge.inputs.head.copy(path = Some("shared/missing"), fileSize = 100)
    bases.follow(merge.copy(inputs = Seq(missing, merge.inputs(1))), snapshot("a"))
    eventually(timeout(5.minutes))(assert(bases.lastFailure.isDefined))
    val failure = bases.lastFailure.get.asInstanceOf[CheckpointFailure]
    assert(failure.error == "DeltaMergeError" && failure.reason.contains("versions 1 to 2"))
    assert(bases.isIdle && bases.forAck(snapshot("a")).isEmpty)
    bases.follow(merge, snapshot("a"))
    assert(entries(merged(bases).segment) == 1)
  }

  test("a required base takes the place of a merge") {
    val bases = new Bases((), ackThreshold = 0)
    bases.follow(merge, snapshot("a"))
    eventually(timeout(5.minutes))(assert(bases.isReady))
    bases.follow(required, snapshot("b"))
    assert(written(bases).exists(_.stateId == "b"))
    assert(bases.isIdle && shared.isEmpty)
  }

  /** A base that is being written until the latch is opened, and a merge above its version, as far as wanted. */
  private class Beside(ackThreshold: Long = 1000, fails: Boolean = false) {
    private val begun = new CountDownLatch(1)
    val end = new CountDownLatch(1)
    val bases = new Bases({
      begun.countDown()
      end.await()
      if (fails) throw new java.io.IOException("no space")
    }, ackThreshold)
    bases.follow(due, snapshot("a"))
    assert(begun.await(5, TimeUnit.MINUTES))
  }

  private def shared: Seq[String] = {
    val found = directory.resolve("shared")
    if (Files.exists(found)) found.toFile.list().toSeq else Nil
  }

  for (limit <- Seq(1000L, -1L)) {
    test(s"merges end while a base is being written, with $limit bytes in the ack") {
      val beside = new Beside(limit)
      import beside._
      try {
        (1 to 3 by 2).foreach { first =>
          bases.follow(mergeFrom(first), snapshot("b"))
          assert(bases.inProgress == Seq(VersionSpan(0, 0), VersionSpan(first, first + 1)))
          assert(merged(bases).segment.firstVersion == first)
          assert(bases.inProgress == Seq(VersionSpan(0, 0)) && !bases.isReady)
        }
      } finally end.countDown()
      assert(ready(bases).asInstanceOf[ReadyBase].stateId == "a" && bases.isIdle)
      shared.foreach(name => files.delete(s"shared/$name"))
    }
  }

  test("a base ends before the merge above it, and each travels with an ack of its own") {
    val beside = new Beside
    import beside._
    bases.follow(merge, snapshot("b"))
    eventually(timeout(5.minutes))(assert(bases.isReady))
    end.countDown()
    bases.follow(required, snapshot("b"))
    assert(written(bases).exists(_.stateId == "a"))
    bases.follow(CompactionRequest.Nothing, snapshot("c"))
    assert(bases.inProgress == Seq(VersionSpan(1, 2)))
    assert(merged(bases).segment.version == 2 && bases.isIdle)
  }

  test("a base that fails leaves the merge above it, and the reverse") {
    val beside = new Beside(fails = true)
    import beside._
    bases.follow(merge, snapshot("b"))
    eventually(timeout(5.minutes))(assert(bases.isReady))
    end.countDown()
    eventually(timeout(5.minutes))(assert(bases.lastFailure.exists(_.getMessage == "no space")))
    assert(bases.inProgress == Seq(VersionSpan(1, 2)) && merged(bases).segment.version == 2)

    val second = new Beside
    val broken = merge.inputs.map { delta =>
      delta.copy(blocks = new Blocks(delta.keyGroups, delta.offsets, Array[Byte](1)))
    }
    second.bases.follow(merge.copy(inputs = broken), snapshot("b"))
    eventually(timeout(5.minutes))(assert(second.bases.lastFailure.isDefined))
    assert(second.bases.inProgress == Seq(VersionSpan(0, 0)))
    second.end.countDown()
    assert(ready(second.bases).isInstanceOf[ReadyBase])
  }

  test("a store that is closed while a base and a merge are written leaves no file of either") {
    val beside = new Beside(ackThreshold = -1)
    import beside._
    bases.follow(merge, snapshot("b"))
    eventually(timeout(5.minutes))(assert(bases.isReady))
    assert(shared.size == 1)
    bases.forget()
    assert(bases.isIdle && shared.isEmpty)
    end.countDown()
    val last = new Bases((), ackThreshold = -1)
    last.follow(due, snapshot("c"))
    eventually(timeout(5.minutes))(assert(last.isReady))
    assert(shared.size == 1)
    last.forget()
    assert(shared.isEmpty && bases.isIdle && bases.lastFailure.isEmpty)
  }

  test("a store that is closed in the middle of a merge leaves no file") {
    val bases = new Bases((), ackThreshold = -1)
    val (begun, end) = (new CountDownLatch(1), new CountDownLatch(1))
    val slow = new StateFiles(new Path(directory.toUri), new Configuration(), _ => {
      begun.countDown()
      end.await()
    })
    val closing = new BaseSnapshots("partition 4", slow, () => -1L)
    closing.follow(merge, snapshot("a"))
    assert(begun.await(5, TimeUnit.MINUTES))
    closing.forget()
    end.countDown()
    bases.follow(merge, snapshot("b"))
    assert(merged(bases).segment.version == 2 && shared.size == 1)
    shared.foreach(name => files.delete(s"shared/$name"))
    assert(closing.isIdle && closing.lastFailure.isEmpty)
  }

  /** A merge of two key groups that waits within the first until the latch is opened. */
  private class MidMerge {
    private val begun = new CountDownLatch(1)
    val end = new CountDownLatch(1)
    private val merge = mergeFrom(1, keyGroups = 2)
    private val slow = new RecentDeltas(false) {
      override def open(firstVersion: Long, version: Long, bytes: Long): Option[ByteSource] = {
        val delta = new ArrayByteSource("a delta", merge.inputs.find(_.version == version).get.data)
        Some(new ByteSource {
          override def name: String = delta.name
          override def length: Long = delta.length
          override def readFully(position: Long, buffer: Array[Byte], from: Int, count: Int): Unit = {
            begun.countDown()
            end.await()
            delta.readFully(position, buffer, from, count)
          }
          override def close(): Unit = ()
        })
      }
    }
    val bases = new BaseSnapshots("partition 5", files, () => -1L, slow)
    bases.follow(merge, snapshot("a"))
    assert(begun.await(5, TimeUnit.MINUTES))
  }

  for (cause <- Seq("its store is closed", "a base begins")) {
    test(s"a merge that is dropped while it runs, since $cause, ends in silence") {
      val uncaught = UncaughtErrorsReporter.expecting(_ => true) {
        val merge = new MidMerge
        import merge._
        if (cause == "a base begins") {
          bases.follow(due, snapshot("b"))
          eventually(timeout(5.minutes))(assert(bases.inProgress == Seq(VersionSpan(0, 0))))
        } else {
          bases.forget()
        }
        end.countDown()
        // The thread is free again.
        val next = new Bases(())
        next.follow(mergeFrom(1), snapshot("c"))
        assert(merged(next).segment.version == 2)
        if (cause == "a base begins") assert(ready(bases).isInstanceOf[ReadyBase])
        assert(bases.isIdle && bases.lastFailure.isEmpty)
        shared.filter(_.startsWith("base-")).foreach(name => files.delete(s"shared/$name"))
        assert(shared.isEmpty)
      }
      assert(uncaught.isEmpty, uncaught)
    }
  }

  test("a merge is begun only above everything in progress, and a base only without another") {
    val beside = new Beside
    import beside._
    bases.follow(mergeFrom(3), snapshot("b"))
    Seq(mergeFrom(1), mergeFrom(3), mergeFrom(4), due).foreach(bases.follow(_, snapshot("c")))
    assert(bases.inProgress == Seq(VersionSpan(0, 0), VersionSpan(3, 4)))
    bases.follow(mergeFrom(5), snapshot("b"))
    assert(bases.inProgress.last == VersionSpan(5, 6))
    end.countDown()
    eventually(timeout(5.minutes))(assert(bases.inProgress.size == 3 && bases.isReady))
    bases.forget()
  }

  test("a base that is due replaces the merges below it") {
    val bases = new Bases((), ackThreshold = -1)
    bases.follow(merge, snapshot("a"))
    eventually(timeout(5.minutes))(assert(bases.isReady))
    bases.follow(due, snapshot("b"))
    eventually(timeout(5.minutes))(assert(bases.inProgress == Seq(VersionSpan(0, 0))))
    assert(ready(bases).isInstanceOf[ReadyBase] && shared.size == 1)
    shared.foreach(name => files.delete(s"shared/$name"))
  }

  test("a base that waits for its turn holds up no merge, and has the changes of all when it begins") {
    val backend = new HashMapStateBackend(4)
    var taken = 0
    val base = new DeferredSnapshot(() => {
      taken += 1
      backend.snapshotBase()
    })
    val bases = new Bases((), ackThreshold = -1)
    val end = busy()
    try {
      bases.follow(due, base)
      Seq(1, 3).foreach { first =>
        bases.follow(mergeFrom(first), snapshot("a"))
        assert(bases.inProgress == Seq(VersionSpan(0, 0), VersionSpan(first, first + 1)))
        eventually(timeout(5.minutes))(assert(bases.isReady))
        if (first == 1) assert(merged(bases).segment.version == 2)
      }
      assert(taken == 0)
      (0 until 4).foreach { version =>
        backend.openForWrite(version)
        backend.commit()
      }
      backend.fold()
    } finally end.countDown()
    eventually(timeout(5.minutes))(assert(bases.inProgress == Seq(VersionSpan(0, 4))))
    assert(ready(bases).asInstanceOf[ReadyBase].version == 4 && taken == 1 && bases.isIdle)
    shared.foreach(name => files.delete(s"shared/$name"))
  }

  /** Keeps the background thread busy until the returned latch is opened. */
  private def busy(): CountDownLatch = {
    val (begun, end) = (new CountDownLatch(1), new CountDownLatch(1))
    new Bases({ begun.countDown(); end.await() }).follow(due, snapshot("x"))
    assert(begun.await(5, TimeUnit.MINUTES))
    end
  }

  Seq(
    new java.io.IOException("no space"),
    new InterruptedException("by a library"),
    new OutOfMemoryError("heap"),
    new StackOverflowError,
    new LinkageError("class"))
    .foreach { error =>
      test(s"a base can be written after one has failed with ${error.getClass.getSimpleName}") {
        var fails = true
        val bases = new Bases(if (fails) throw error)
        val uncaught = UncaughtErrorsReporter.expecting(_ eq error) {
          bases.follow(due, snapshot("a"))
          eventually(timeout(5.minutes))(assert(bases.lastFailure.contains(error)))
          assert(bases.isIdle && written(bases).isEmpty)
          fails = false
          bases.follow(due, snapshot("b"))
          eventually(timeout(5.minutes))(assert(written(bases).exists(_.stateId == "b")))
        }
        // Only a lack of memory is not that of the base alone. It is in the log, and Spark ends an executor by it.
        assert(uncaught.exists(_ eq error) == error.isInstanceOf[OutOfMemoryError])
        assert(uncaught.isEmpty || uncaught.exists(_.getCause eq error))
        bases.clearFailure()
        assert(bases.lastFailure.isEmpty)
      }
    }

  test("a state of which no base can be written fails the next ack, whatever was demanded") {
    val bases = new Bases(throw new StateTooLargeException("Key group 7 has too much: raise it."))
    bases.follow(due, snapshot("a"))
    eventually(timeout(5.minutes))(assert(bases.lastFailure.isDefined))
    (1 to 2).foreach { _ =>
      val failure = intercept[StateTooLargeException](written(bases))
      assert(failure.getMessage == "partition 3: Key group 7 has too much: raise it.")
    }
  }

  test("a required base that fails fails the ack, and the next one tries again") {
    var fails = true
    val bases = new Bases(if (fails) throw new java.io.IOException("no space"))
    bases.follow(required, snapshot("a"))
    (1 to 3).foreach { _ =>
      val failure = intercept[CheckpointFailure](written(bases))
      assert(failure.error == "BaseSnapshotError" && failure.reason.contains("partition 3"))
      assert(failure.reason.contains("no space"))
    }
    fails = false
    assert(written(bases).isDefined)
  }

  test("a closed store begins nothing in the background, and frees what it would have written") {
    var closed = 0
    class Counted extends BaseSnapshot {
      override def version: Long = 1
      override def stateId: String = "a"
      override def rows: Long = 0
      override def rawBytes: Long = 0
      override def write(out: java.io.OutputStream): SegmentInfo = fail()
      override def toBytes(): SegmentBytes = fail()
      override def close(): Unit = closed += 1
    }
    val bases = new Bases(())
    bases.close()
    bases.follow(due, new Counted)
    bases.follow(merge, new Counted)
    assert(bases.isIdle && closed == 1)
    // In the middle of the demand.
    val other = new Bases(())
    other.follow(due, {
      other.close()
      new Counted
    })
    assert(other.isIdle && closed == 2)
    // A task that is committing continues.
    bases.follow(required, new Counted)
    assert(written(bases).exists(_.stateId == "a") && closed == 3)
  }

  test("a base that is dropped while it is written stops") {
    val backend = new HashMapStateBackend(4)
    val (begun, end) = (new CountDownLatch(1), new CountDownLatch(1))
    @volatile var stopped = false
    val bases = new BaseSnapshots("partition 6", files, () => -1L) {
      override protected def write(snapshot: BaseSnapshot, pass: () => Unit): SegmentRef = {
        begun.countDown()
        end.await()
        try pass() catch {
          case e: NoLongerNeededException =>
            stopped = true
            throw e
        }
        super.write(snapshot, pass)
      }
    }
    bases.follow(due, backend.snapshotBase())
    assert(begun.await(5, TimeUnit.MINUTES))
    bases.forget()
    end.countDown()
    eventually(timeout(5.minutes))(assert(stopped))
    val next = new Bases(())
    next.follow(due, snapshot("b"))
    assert(ready(next).isInstanceOf[ReadyBase] && bases.lastFailure.isEmpty && shared.isEmpty)
  }

  test("a base that is only due is not waited for") {
    val end = busy()
    try {
      val bases = new Bases(())
      bases.follow(due, snapshot("a"))
      assert(written(bases).isEmpty && !bases.isIdle)
    } finally end.countDown()
  }

  test("a required base does not wait for those of other stores") {
    val end = busy()
    try {
      val bases = new Bases(())
      bases.follow(required, snapshot("a"))
      assert(written(bases).exists(_.stateId == "a"))
    } finally end.countDown()
  }

  test("a required base that is being written is waited for, and written once") {
    val (begun, end) = (new CountDownLatch(1), new CountDownLatch(1))
    @volatile var times = 0
    val bases = new Bases({ times += 1; begun.countDown(); end.await() })
    bases.follow(due, snapshot("a"))
    assert(begun.await(5, TimeUnit.MINUTES))
    bases.follow(required, snapshot("b"))
    var found: Option[ReadyBase] = None
    val waiting = new Thread(() => found = written(bases))
    waiting.start()
    eventually(timeout(5.minutes))(assert(waiting.getState == Thread.State.TIMED_WAITING))
    end.countDown()
    waiting.join()
    assert(found.exists(_.stateId == "a") && times == 1)
  }

  test("a base that is forgotten before it is begun is never written, and one that is written leaves no file") {
    @volatile var writes = 0
    val end = busy()
    val queued = new Bases(writes += 1, ackThreshold = -1)
    queued.follow(due, snapshot("a"))
    queued.forget()
    end.countDown()
    val (begun, rest) = (new CountDownLatch(1), new CountDownLatch(1))
    val running = new Bases({ begun.countDown(); rest.await() }, ackThreshold = -1)
    running.follow(due, snapshot("b"))
    assert(begun.await(5, TimeUnit.MINUTES))
    running.forget()
    rest.countDown()
    val last = new Bases((), ackThreshold = -1)
    last.follow(due, snapshot("c"))
    eventually(timeout(5.minutes))(assert(last.isReady))
    assert(shared.size == 1)
    last.forget()
    assert(shared.isEmpty && writes == 0)
  }
}
