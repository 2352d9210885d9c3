// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt

import java.io.File
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, StandardCopyOption}
import java.util.{Map => JMap}
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.spark.sql.classic.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeqMetadata
import org.apache.spark.sql.execution.streaming.runtime.{MicroBatchExecution, StreamingQueryWrapper}
import org.apache.spark.sql.streaming.StreamingQueryListener
import org.apache.spark.sql.streaming.StreamingQueryListener._

/**
 * Plans each new query of Spark's suites without a start as well, and keeps both: below the directory of the property
 * `suites.planned`, a directory per run with `planned`, `real`, the location of the real one and the planned meaning.
 * `tests/suites/planned.py` compares them.
 */
class PlannedQueries extends StreamingQueryListener {
  private val work = Path.of(System.getProperty("suites.planned"))
  private val running = new ConcurrentHashMap[java.util.UUID, File]()

  /** Called in the thread of the query, before its first batch. */
  override def onQueryStarted(event: QueryStartedEvent): Unit = {
    val session = SparkSession.active
    session.streams.get(event.id) match {
      case query: StreamingQueryWrapper =>
        query.streamingQuery match {
          case batches: MicroBatchExecution => plan(session, batches)
          case _ =>
        }
      case _ =>
    }
  }

  private def plan(session: SparkSession, query: MicroBatchExecution): Unit = {
    val root = new File(new org.apache.hadoop.fs.Path(query.resolvedCheckpointRoot).toUri.getPath)
    val isNew = Option(new File(root, "offsets").list()).forall(_.isEmpty)
    if (isNew) {
      val directory = work.resolve(query.runId.toString)
      val planned = directory.resolve("planned")
      Files.createDirectories(planned.resolve("offsets"))
      Files.writeString(directory.resolve("location"), root.getPath)
      running.put(query.runId, root)
      try {
        val there = OffsetSeqMetadata(0L, 0L, session.conf)
        val metadata = there.copy(conf = there.conf.filter(_._2 != null))
        Files.writeString(planned.resolve("offsets").resolve("0"), s"v1\n${metadata.json}\n-")
        val frame = Dataset.ofRows(session, query.analyzedPlan)
        val mode = query.outputMode.toString.toLowerCase(java.util.Locale.ROOT)
        Files.writeString(directory.resolve("meaning"),
          PlannedQueries.plan(frame, mode, s"file:$planned", metadata.conf.asJava, metadata.json))
      } catch {
        case NonFatal(e) => Files.write(directory.resolve("error"), e.toString.getBytes(UTF_8))
      }
    }
  }

  override def onQueryProgress(event: QueryProgressEvent): Unit = ()

  /** The location may be gone: tests delete theirs. */
  override def onQueryTerminated(event: QueryTerminatedEvent): Unit =
    Option(running.remove(event.runId)).foreach { root =>
      val real = work.resolve(event.runId.toString).resolve("real")
      for (name <- Seq("state", "ckpt"); from = new File(root, name) if from.isDirectory) {
        try copy(from.toPath, real.resolve(name))
        catch { case NonFatal(_) => Files.write(real.resolveSibling("gone"), Array.emptyByteArray) }
      }
    }

  private def copy(from: Path, to: Path): Unit = {
    val found = Files.walk(from)
    try {
      found.iterator.asScala.filter(Files.isRegularFile(_)).filter(isDescription).foreach { file =>
        val target = to.resolve(from.relativize(file).toString)
        Files.createDirectories(target.getParent)
        Files.copy(file, target, StandardCopyOption.REPLACE_EXISTING)
      }
    } finally found.close()
  }

  private def isDescription(file: Path): Boolean = {
    val name = file.toString
    name.contains("_metadata") || name.contains("_stateSchema")
  }
}

private object PlannedQueries {

  /** `QueryPlans.plan` of the jar under test, which is not there when the suites are compiled. */
  def plan(
      frame: DataFrame, mode: String, location: String, settings: JMap[String, String], metadata: String): String = {
    val plans = Class.forName("org.apache.spark.sql.ckpt.meaning.QueryPlans")
    val method = plans.getMethods.find(_.getName == "plan").get
    try method.invoke(null, frame, mode, location, settings, metadata).asInstanceOf[String]
    catch { case e: java.lang.reflect.InvocationTargetException => throw e.getCause }
  }
}
