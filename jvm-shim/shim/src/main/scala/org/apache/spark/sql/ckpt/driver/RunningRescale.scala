// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import scala.collection.mutable
import scala.concurrent.duration.FiniteDuration

import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.execution.streaming.runtime.{MicroBatchExecution, StreamExecution}
import org.apache.spark.sql.internal.SQLConf

/**
 * Another number of partitions for a running query, from its next batch on.
 *
 * Spark plans each batch with the number in the settings of its offsets (`IncrementalExecution.numStateStores`), which
 * are those of the batch before. It creates the entry of the offset log between two batches: all of the last one is
 * committed, and nothing of the next one exists. The entry is serialized after that, so a number that changes here is
 * that of the entry, of the batch and of all later ones, and of a start after a crash.
 */
private[driver] object RunningRescale extends Logging {

  /**
   * Changes the number, if the coordinator agrees. The query continues with the number before if it does not.
   *
   * @param batchId the next batch
   * @param timeout longest wait for the coordinator
   * @throws CheckpointFailure if the coordinator does not answer. Then the run ends, with the number before.
   */
  def begin(
      query: StreamExecution,
      batchId: Long,
      partitions: Int,
      requests: CheckpointRequests,
      timeout: FiniteDuration): Unit = {
    // Before anything changes: another patch release of Spark may lack one of them.
    val (pinned, ids) = (new PinnedSettings(query), new NextStateIds(query))
    try {
      val reply = requests.rescale(query.runId.toString, batchId, partitions, timeout)
      reply.stateIds.foreach { case (operator, states) => ids.set(operator.toLong, states) }
      pinned.set(SQLConf.SHUFFLE_PARTITIONS.key, partitions.toString)
      logInfo(s"query ${query.id}: $partitions partitions from batch $batchId on; ${reply.before} before")
    } catch {
      case refused: CheckpointFailure if refused.error == Refused =>
        logWarning(s"query ${query.id} keeps its number of partitions: ${refused.reason}")
    }
  }

  private val Refused = "RescaleRefusedError"

  /**
   * Settings that Spark pins for the batch that it is about to begin (`OffsetSeqMetadata.conf`). They belong to this
   * batch alone: Spark copies them for the next one.
   */
  private final class PinnedSettings(query: StreamExecution) {
    private val metadata = query.getLatestExecutionContext().offsetSeqMetadata

    private val field = metadata.getClass.getDeclaredField("conf")
    field.setAccessible(true)

    def set(key: String, value: String): Unit = field.set(metadata, metadata.conf + (key -> value))
  }

  /** Ids of the states that the next batch asks for, with checkpoint format 2. */
  private final class NextStateIds(query: StreamExecution) {
    private val field = classOf[MicroBatchExecution].getDeclaredField("currentStateStoreCkptId")
    field.setAccessible(true)
    private val byOperator = field.get(query).asInstanceOf[mutable.Map[Long, Array[Array[String]]]]

    def set(operator: Long, partitions: Seq[Seq[String]]): Unit =
      byOperator(operator) = partitions.map(_.toArray).toArray
  }
}
