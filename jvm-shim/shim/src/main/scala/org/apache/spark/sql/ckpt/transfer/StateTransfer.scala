/*
 * Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
 * the License. You may obtain a copy of the License at
 *
 *    http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on
 * an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
 * specific language governing permissions and limitations under the License.
 */
package org.apache.spark.sql.ckpt.transfer

import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.ckpt.CheckpointFailure
import org.apache.spark.sql.ckpt.protocol.Message
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.state.StateStoreConf
import org.apache.spark.util.SerializableConfiguration

/**
 * Entry points of `spark_ckpt.transfer`, which calls them through Py4J. Plans and results are JSON; a result with the
 * field `error` is a failure.
 */
object StateTransfer {

  /**
   * The stores of a location: `{"stores": [{"operator_id", "name", "store", "partitions", "state_format_version",
   * "families": [name, ..]}]}`. Reads no state.
   */
  def describe(session: SparkSession, plan: String): String = answering {
    val source = SourceState.of(Message.mapper.readTree(plan))
    result(storesOf(session, source))
  }

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
    val answer = result(stores)
    val parts = run(session, imported, stores, jobGroup)
    stores.indices.foreach { index =>
      val array = answer.path("stores").path(index).asInstanceOf[ObjectNode].putArray("parts")
      parts.filter(_.store == index).sortBy(_.partition).foreach(part => describe(part, array.addObject()))
    }
    answer
  }

  private def run(
      session: SparkSession,
      plan: ImportPlan,
      stores: Seq[StoreDescription],
      jobGroup: String): Seq[ImportedPartition] = {
    val context = session.sparkContext
    session.streams.stateStoreCoordinator // providers report to it
    val conf = new StateStoreConf(plan.source.conf(session.sessionState.conf))
    val hadoopConf = context.broadcast(new SerializableConfiguration(session.sessionState.newHadoopConf()))
    val shared = context.broadcast((plan, stores, conf))
    val tasks = for (index <- stores.indices; partition <- 0 until stores(index).partitions) yield (index, partition)
    if (tasks.isEmpty) return Nil
    context.setJobGroup(jobGroup, s"spark-ckpt: import of ${plan.source.location}", interruptOnCancel = true)
    try context.parallelize(tasks, tasks.size).map { case (index, partition) =>
      val (ofTask, described, settings) = shared.value
      new ImportTask(ofTask, described(index), partition, settings, hadoopConf.value.value).run(index)
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
    val families = to.putArray("families")
    part.families.foreach { family =>
      families.addObject().put("name", family.name).put("rows", family.rows).put("sum", f"${family.sum}%016x")
    }
  }

  private def answering(body: => ObjectNode): String = {
    val answer =
      try body catch {
        case e: Throwable if failureIn(e).isDefined =>
          val failure = failureIn(e).get
          Message.mapper.createObjectNode().put("error", failure.error).put("message", failure.reason)
      }
    answer.toString
  }

  /** The failure of a task is among the causes of the job's. */
  private def failureIn(e: Throwable): Option[CheckpointFailure] =
    Iterator.iterate(e)(_.getCause).takeWhile(_ != null).take(20).collectFirst { case f: CheckpointFailure => f }
}
