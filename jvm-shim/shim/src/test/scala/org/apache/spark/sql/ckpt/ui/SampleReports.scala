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
package org.apache.spark.sql.ckpt.ui

import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.ckpt.SparkListenerCheckpoint
import org.apache.spark.sql.ckpt.protocol.Message

/** Reports as the side process sends them. */
object SampleReports {
  val Hostile = """<script>alert("x")</script>&'"""
  val Run = "00000000-0000-0000-0000-000000000001"

  private def base(status: String, run: String, batch: Long, name: String): ObjectNode =
    Message.newHeader().put("status", status).put("run_id", run).put("query_id", "the query").put("query_name", name)
      .put("generation", 1).put("batch_id", batch).put("version", batch + 1)

  def triggered(batch: Long, run: String = Run, name: String = "name"): SparkListenerCheckpoint =
    SparkListenerCheckpoint(
      base("triggered", run, batch, name).put("triggered_ms", 1000 * batch).put("acks", 0).put("expected", 4))

  def completed(
      batch: Long,
      run: String = Run,
      name: String = "name",
      partitions: Int = 4): SparkListenerCheckpoint = {
    val report = base("completed", run, batch, name).put("id", batch + 100).put("triggered_ms", 1000 * batch)
      .put("completed_ms", 1000 * batch + 70).put("duration_ms", 60).put("completing_ms", 10)
      .put("acks", partitions).put("expected", partitions)
      .put("state_bytes", 4096).put("new_bytes", 1024).put("rows", 77).put("chain_length", 3)
    report.putObject("failures").put("storage", 2)
    withSubtasks(report, name, partitions)
  }

  def failed(
      batch: Long,
      run: String = Run,
      name: String = "name",
      cause: String = "expired: x"): SparkListenerCheckpoint =
    withSubtasks(
      base("failed", run, batch, name).put("triggered_ms", 1000 * batch).put("failed_ms", 1000 * batch + 90)
        .put("duration_ms", 90).put("acks", 1).put("expected", 4).put("cause", cause),
      name,
      1)

  def restored(run: String = Run, name: String = "name"): SparkListenerCheckpoint =
    SparkListenerCheckpoint(
      base("restored", run, 7, name).put("id", 107).put("completed_ms", 5).put("restored_ms", 6)
        .put("path", s"/there/$name").put("state_bytes", 4096).put("rows", 77).put("chain_length", 3))

  private def withSubtasks(report: ObjectNode, name: String, partitions: Int): SparkListenerCheckpoint = {
    val operator = report.putArray("operators").addObject()
    operator.put("operator_id", 0).put("name", name).put("store", name).put("parallelism", partitions)
      .put("acks", partitions).put("rows", 77).put("new_bytes", 1024).put("state_bytes", 4096).put("chain_length", 3)
    Seq("acknowledged_ms", "start_delay_ms", "snapshot_us", "write_us").foreach { figure =>
      operator.putArray(figure).add(1).add(2).add(3)
    }
    val subtasks = report.putArray("subtasks")
    (0 until partitions).foreach { partition =>
      subtasks.addArray().add(0).add(name).add(partition).add(s"exec-$partition").add(partition).add(1)
        .add(1500).add(2500).add(256).add(1024).add(3).add(19)
    }
    SparkListenerCheckpoint(report)
  }
}
