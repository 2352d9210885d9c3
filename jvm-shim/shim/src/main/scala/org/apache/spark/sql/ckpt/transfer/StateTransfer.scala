// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.transfer

import scala.jdk.CollectionConverters._
import scala.reflect.ClassTag
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.ckpt.driver.{CheckpointDriver, FileSystemSettings}
import org.apache.spark.sql.ckpt.protocol.Message
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.state.StateStoreConf
import org.apache.spark.util.SerializableConfiguration

/**
 * Entry points of `spark_ckpt.migrate`, which calls them through Py4J. Plans and results are JSON; a result with the
 * field `error` is a failure.
 */
object StateTransfer {

  /**
   * The stores of a location: `{"stores": [{"operator_id", "name", "store", "partitions", "state_format_version",
   * "families": [name, ..], "has_families", "state_ids"}]}`. Reads no state.
   */
  def describe(session: SparkSession, plan: String): String = answering {
    val source = SourceState.of(Message.mapper.readTree(plan))
    result(storesOf(session, source))
  }

  /**
   * A location as Hadoop writes it, and the settings of its file system: `{"location", "settings"}`, or `{"error"}` if
   * it is no location.
   */
  def locate(session: SparkSession, location: String): String = {
    val conf = session.sessionState.newHadoopConf()
    val answer = Message.newHeader()
    try {
      val path = qualified(new Path(location), conf).toString
      val settings = answer.put("location", path).putObject("settings")
      FileSystemSettings.of(path, conf).foreach { case (key, value) => settings.put(key, value) }
    } catch { case e: IllegalArgumentException => answer.put("error", e.toString) }
    answer.toString
  }

  private def qualified(path: Path, conf: Configuration): Path = path.toUri.getScheme match {
    case null => FileSystem.get(conf).makeQualified(path)
    case scheme @ ("s3" | "s3n") if conf.get(s"fs.$scheme.impl") == null =>
      new Path("s3a", path.toUri.getAuthority, path.toUri.getPath)
    case _ => path
  }

  /** True if this process ran a query, in any session, and does so no more. */
  def hasEnded(session: SparkSession, pid: Long, runId: String): Boolean =
    pid == ProcessHandle.current().pid() && !CheckpointDriver.isActive(runId) &&
      !session.sharedState.activeStreamingQueries.values().asScala.exists(_.runId.toString == runId)

  /** Hadoop's file systems of a session. */
  def files(session: SparkSession): SessionFiles = new SessionFiles(session)

  /**
   * Imports the state of a location. It writes base snapshots below `ckpt/shared` of the target, and nothing else.
   *
   * @param jobGroup group of its Spark job, for progress and cancellation
   * @return the stores as in [[describe]], each with `"parts"`: per partition `{"rows", "path", "bytes", "groups",
   *         "offsets", "families": [{"name", "rows", "sum"}]}`
   */
  def importState(session: SparkSession, plan: String, jobGroup: String): String = answering {
    val imported = ImportPlan.of(plan)
    val stores = storesOf(session, imported.source)
    val conf = new StateStoreConf(imported.source.conf(session.sessionState.conf))
    val parts = run(session, stores, jobGroup, s"import of ${imported.source.location}") {
      (index, partition, store, hadoopConf) => new ImportTask(imported, store, partition, conf, hadoopConf).run(index)
    }
    resultWith(stores)((index, array) =>
      parts.filter(_.store == index).sortBy(_.partition).foreach(part => describe(part, array.addObject())))
  }

  /**
   * Exports the state of a location through a provider of Spark. It writes below `state` of the target, and nothing
   * else.
   *
   * @param jobGroup group of its Spark job, for progress and cancellation
   * @return the stores as in [[describe]], each with `"parts"`: per partition `{"state_id", "families": [{"name",
   *         "rows", "sum"}]}`
   */
  def exportState(session: SparkSession, plan: String, jobGroup: String): String = answering {
    val exported = ExportPlan.of(plan)
    val stores = storesOf(session, exported.source)
    val readConf = new StateStoreConf(exported.source.conf(session.sessionState.conf))
    val writeConf = new StateStoreConf(exported.conf(session.sessionState.conf))
    val parts = run(session, stores, jobGroup, s"export of ${exported.source.location}") {
      (index, partition, store, hadoopConf) =>
        new ExportTask(exported, store, partition, readConf, writeConf, hadoopConf).run(index)
    }
    resultWith(stores)((index, array) => parts.filter(_.store == index).sortBy(_.partition).foreach { part =>
      val described = array.addObject()
      part.stateId.fold(described.putNull("state_id"))(described.put("state_id", _))
      describe(part.families, described)
    })
  }

  /** The results of a Spark job with a task per partition of each store. */
  private def run[A: ClassTag](
      session: SparkSession,
      stores: Seq[StoreDescription],
      jobGroup: String,
      description: String)(
      task: (Int, Int, StoreDescription, Configuration) => A): Seq[A] = {
    val context = session.sparkContext
    session.streams.stateStoreCoordinator // providers report to it
    val hadoopConf = context.broadcast(new SerializableConfiguration(session.sessionState.newHadoopConf()))
    val shared = context.broadcast(stores)
    val tasks = for (index <- stores.indices; partition <- 0 until stores(index).partitions) yield (index, partition)
    if (tasks.isEmpty) return Nil
    context.setJobGroup(jobGroup, s"spark-ckpt: $description", interruptOnCancel = true)
    try context.parallelize(tasks, tasks.size).map { case (index, partition) =>
      task(index, partition, shared.value(index), hadoopConf.value.value)
    }.collect().toSeq
    finally {
      context.clearJobGroup()
      shared.destroy()
      hadoopConf.destroy()
    }
  }

  private def storesOf(session: SparkSession, source: SourceState): Seq[StoreDescription] =
    new LocationStores(source, source.conf(session.sessionState.conf), session.sessionState.newHadoopConf()).all

  private def result(stores: Seq[StoreDescription]): ObjectNode = {
    val answer = Message.mapper.createObjectNode()
    val array = answer.putArray("stores")
    stores.foreach { store =>
      val described = array.addObject()
        .put("operator_id", store.operatorId)
        .put("name", store.operator)
        .put("store", store.store)
        .put("partitions", store.partitions)
      store.stateFormatVersion.fold(described.putNull("state_format_version"))(described.put("state_format_version", _))
      val families = described.putArray("families")
      store.used.foreach(family => families.add(family.name))
      described.put("has_families", store.usesColumnFamilies)
      store.stateIds.fold[Unit](described.putNull("state_ids")) { ids =>
        val array = described.putArray("state_ids")
        ids.foreach(array.add(_))
      }
    }
    answer
  }

  /** @param parts describes the partitions of the store with a number */
  private def resultWith(stores: Seq[StoreDescription])(parts: (Int, ArrayNode) => Unit): ObjectNode = {
    val answer = result(stores)
    stores.indices.foreach { index =>
      parts(index, answer.path("stores").path(index).asInstanceOf[ObjectNode].putArray("parts"))
    }
    answer
  }

  private def describe(part: ImportedPartition, to: ObjectNode): Unit = {
    to.put("rows", part.base.fold(0L)(_._2.entries))
    part.base.foreach { case (path, info) =>
      to.put("path", path).put("bytes", info.bytes)
      val groups = to.putArray("groups")
      info.keyGroups.foreach(groups.add(_))
      val offsets = to.putArray("offsets")
      info.offsets.foreach(offsets.add(_))
    }
    describe(part.families, to)
  }

  private def describe(digests: Seq[FamilyDigest], to: ObjectNode): Unit = {
    val families = to.putArray("families")
    digests.foreach { family =>
      families.addObject().put("name", family.name).put("rows", family.rows).put("sum", f"${family.sum}%016x")
    }
  }

  private def answering(body: => ObjectNode): String = {
    val answer =
      try body catch {
        case e: Throwable if failureIn(e).isDefined =>
          val failure = failureIn(e).get
          Message.newHeader().put("error", failure.error).put("message", failure.reason)
        case NonFatal(e) =>
          Message.newHeader().put("error", "JobFailedError").put("message", s"the Spark job failed: ${reasons(e)}")
      }
    answer.toString
  }

  /** A failure and its root cause: Spark's providers wrap what the file system says. */
  def reasons(e: Throwable): String = {
    val root = CheckpointFailure.causesOf(e).toSeq.last
    if (root eq e) e.toString else s"$e; cause: $root"
  }

  /** The failure of a task is among the causes of the job's. */
  private def failureIn(e: Throwable): Option[CheckpointFailure] =
    CheckpointFailure.causesOf(e).collectFirst { case f: CheckpointFailure => f }
}
