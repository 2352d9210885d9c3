// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.files

import java.io.OutputStream
import java.util.concurrent.{CountDownLatch, Executors, Future, TimeUnit}

import io.github.sparkckpt.engine.segment.SegmentInfo
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.concurrent.Eventually._
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

import org.apache.spark.sql.ckpt.protocol.{SegmentRef, SharedFileLimits}
import org.apache.spark.util.Utils

class GroupCommitSuite extends AnyFunSuite {
  private val patient = SharedFileLimits(maxWaitMillis = 3600000, maxBytes = 100)
  private val threads = Executors.newCachedThreadPool()
  private val directory = new Path(Utils.createTempDir(namePrefix = "group-commit").toURI)
  private val files = new StateFiles(directory, new Configuration())
  private val stage = StageAttempt(directory, stageId = 3, attempt = 0)

  private def body(bytes: String)(out: OutputStream): SegmentInfo = {
    out.write(bytes.getBytes)
    SegmentInfo(Array(0), Array(0L), 1, bytes.length)
  }

  private def commit(group: GroupCommit, task: Long, size: Long = 1, limits: SharedFileLimits = patient)(
      body: OutputStream => SegmentInfo): Future[SegmentRef] =
    threads.submit(() => group.write(files, stage, task, 8, size, limits)(body))

  private def result(future: Future[SegmentRef]): SegmentRef = future.get(5, TimeUnit.MINUTES)

  /** The bytes that a segment says are its own. */
  private def read(segment: SegmentRef): String = {
    val all = new String(files.readFully(segment.path.get))
    assert(segment.fileSize == all.length && segment.firstVersion == 8 && segment.version == 8)
    all.slice(segment.offsets.head.toInt, segment.offsets.head.toInt + segment.size.toInt)
  }

  private def isAlone(segment: SegmentRef): Boolean = segment.offsets.head == 0 && segment.fileSize == segment.size

  test("tasks of a stage that commit together have one file, and each knows its part") {
    val group = new GroupCommit
    Seq(1L, 2L, 3L).foreach(group.enter(stage, _))
    val segments = Seq("one", "second", "3").zipWithIndex.map { case (text, i) => commit(group, i + 1L)(body(text)) }
    val shipped = segments.map(result)
    assert(shipped.map(read) == Seq("one", "second", "3"))
    assert(shipped.flatMap(_.path).distinct.size == 1)
    assert(shipped.map(_.offsets.head).toSet.size == 3)
  }

  test("a task without others does not wait, and its file is its own") {
    val group = new GroupCommit
    group.enter(stage, 1L)
    val shipped = result(commit(group, 1L)(body("alone")))
    assert(read(shipped) == "alone" && isAlone(shipped) && shipped.path.get.startsWith("shared/delta-"))
  }

  test("a task that has ended is not waited for") {
    val group = new GroupCommit
    group.enter(stage, 1L)
    group.enter(stage, 2L)
    val waiting = commit(group, 1L)(body("first"))
    group.leave(stage, 2L)
    assert(read(result(waiting)) == "first")
  }

  test("a task that takes its time is not waited for beyond the limit") {
    val group = new GroupCommit
    val impatient = patient.copy(maxWaitMillis = 1)
    group.enter(stage, 1L)
    group.enter(stage, 2L)
    assert(isAlone(result(commit(group, 1L, limits = impatient)(body("first")))))
    assert(isAlone(result(commit(group, 2L, limits = impatient)(body("second")))))
  }

  test("a file that is full is written, and the next task begins another") {
    val group = new GroupCommit
    val small = patient.copy(maxBytes = 10)
    Seq(1L, 2L, 3L).foreach(group.enter(stage, _))
    val full = Seq(1L, 2L).map(task => commit(group, task, size = 5, small)(body(s"task $task"))).map(result)
    group.leave(stage, 1L)
    group.leave(stage, 2L)
    val next = result(commit(group, 3L, limits = small)(body("third")))
    assert(full.map(read) == Seq("task 1", "task 2") && full.flatMap(_.path).distinct.size == 1)
    assert(read(next) == "third" && isAlone(next))
  }

  test("attempts of a stage share nothing") {
    val group = new GroupCommit
    val again = stage.copy(attempt = 1)
    group.enter(stage, 1L)
    group.enter(again, 2L)
    val first = result(commit(group, 1L)(body("first")))
    val second = group.write(files, again, 2L, 8, 1, patient)(body("second"))
    assert(first.path != second.path && isAlone(first) && isAlone(second))
  }

  test("where the one that writes for all fails, each other writes for itself") {
    val group = new GroupCommit
    Seq(1L, 2L).foreach(group.enter(stage, _))
    val leads = commit(group, 1L)(_ => throw new IllegalStateException("killed"))
    awaitBlocked()
    val other = commit(group, 2L)(body("other"))
    assert(intercept[java.util.concurrent.ExecutionException](result(leads)).getCause.getMessage == "killed")
    val shipped = result(other)
    assert(read(shipped) == "other" && isAlone(shipped))
  }

  test("a task that is killed while another writes for it ends only when its changes are not read any more") {
    val group = new GroupCommit
    Seq(1L, 2L).foreach(group.enter(stage, _))
    val (writing, goOn) = (new CountDownLatch(1), new CountDownLatch(1))
    val leads = commit(group, 1L) { out =>
      writing.countDown()
      goOn.await()
      body("first")(out)
    }
    awaitBlocked()
    @volatile var killed = false
    val follower = new Thread(() => {
      group.write(files, stage, 2L, 8, 1, patient)(body("second"))
      killed = Thread.currentThread().isInterrupted
    })
    follower.start()
    writing.await()
    follower.interrupt()
    goOn.countDown()
    assert(!isAlone(result(leads)))
    follower.join()
    assert(killed)
  }

  /** The first one has come, and waits. */
  private def awaitBlocked(): Unit = eventually(timeout(5.minutes), interval(1.millis))(assert(waiting))

  private def waiting: Boolean = {
    import scala.jdk.CollectionConverters._
    Thread.getAllStackTraces.asScala.exists { case (thread, stack) =>
      thread.getState == Thread.State.TIMED_WAITING &&
      stack.exists(_.getClassName == classOf[GroupCommit].getName)
    }
  }
}
