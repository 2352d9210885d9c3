// SPDX-License-Identifier: Apache-2.0
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

  def started(
      run: String = Run, name: String = "name", generation: Int = 2, hung: Int = 0): SparkListenerCheckpoint = {
    val report = Message.newHeader().put("status", "started").put("run_id", run).put("query_id", "the query")
      .put("query_name", name).put("generation", generation).put("location", s"/there/$name").put("host", name)
      .put("pid", 12).put("claimed_ms", 7).put("max_parallelism", 1024).put("spark_version", "4.2.0")
      .put("spark_ckpt_version", "1")
    if (hung > 0) report.put("hung", hung) // a report of an earlier release has none
    report.putArray("key_group_factors").add(4).add(256)
    report.putArray("fenced").addObject().put("generation", 1).put("host", s"other $name").put("pid", 11)
      .put("run_id", "earlier").put("claimed_ms", 6)
    val settings = report.putArray("settings")
    settings.addArray().add("retained").add("5").add(true).add("2")
    settings.addArray().add("python").add(name).add(false) // of a release without defaults
    SparkListenerCheckpoint(report)
  }

  def triggered(batch: Long, run: String = Run, name: String = "name"): SparkListenerCheckpoint =
    SparkListenerCheckpoint(
      base("triggered", run, batch, name).put("triggered_ms", 1000 * batch).put("acks", 0).put("expected", 4))

  def progress(batch: Long, acks: Int): SparkListenerCheckpoint =
    SparkListenerCheckpoint(
      base("progress", Run, batch, "name").put("triggered_ms", 1000 * batch).put("acks", acks).put("expected", 4)
        .put("last_ack_ms", 1000 * batch + 500))

  /** @param slow subtask that takes a hundred times as long, and has as many rows; -1 for none */
  def completed(
      batch: Long,
      run: String = Run,
      name: String = "name",
      partitions: Int = 4,
      slow: Int = -1): SparkListenerCheckpoint = {
    val report = base("completed", run, batch, name).put("id", batch + 100).put("triggered_ms", 1000 * batch)
      .put("completed_ms", 1000 * batch + 70).put("duration_ms", 60).put("completing_ms", 10)
      .put("acks", partitions).put("expected", partitions)
      .put("state_bytes", 4096).put("new_bytes", 1024).put("rows", 77).put("chain_length", 3)
    report.putObject("failures").put("storage", 2)
    withSubtasks(report, name, partitions, slow)
  }

  def failed(
      batch: Long,
      run: String = Run,
      name: String = "name",
      cause: String = "expired: x",
      reason: String = "expired"): SparkListenerCheckpoint =
    withSubtasks(
      base("failed", run, batch, name).put("triggered_ms", 1000 * batch).put("failed_ms", 1000 * batch + 90)
        .put("duration_ms", 90).put("acks", 1).put("expected", 4).put("cause", cause)
        .put("reason", reason),
      name,
      1,
      parallelism = 4)

  def restored(run: String = Run, name: String = "name"): SparkListenerCheckpoint =
    SparkListenerCheckpoint(
      base("restored", run, 7, name).put("id", 107).put("completed_ms", 5).put("restored_ms", 6)
        .put("operation", "evolve")
        .put("path", s"/there/$name").put("state_bytes", 4096).put("rows", 77).put("chain_length", 3))

  def savepoint(name: String = "name"): SparkListenerCheckpoint =
    SparkListenerCheckpoint(
      base("savepoint", Run, 7, name).put("id", 107).put("taken_ms", 9).put("path", s"/backup/$name"))

  private def withSubtasks(
      report: ObjectNode,
      name: String,
      partitions: Int,
      slow: Int = -1,
      parallelism: Int = 0): SparkListenerCheckpoint = {
    val operator = report.putArray("operators").addObject()
    operator.put("operator_id", 0).put("name", name).put("store", name).put("parallelism", partitions.max(parallelism))
      .put("acks", partitions).put("rows", 77).put("new_bytes", 1024).put("state_bytes", 4096).put("chain_length", 3)
    Seq("acknowledged_ms", "start_delay_ms", "snapshot_us", "write_us", "acknowledge_us", "subtask_new_bytes",
      "subtask_state_bytes", "subtask_rows").foreach { figure =>
      operator.putArray(figure).add(1).add(2).add(3)
    }
    operator.putNull("restore_us")
    val subtasks = report.putArray("subtasks")
    (0 until partitions).foreach { partition =>
      val times = if (partition == slow) 100 else 1
      val subtask = subtasks.addArray().add(0).add(name).add(partition).add(s"exec-$partition")
        .add(if (slow < 0) partition else 10 * times).add(1).add(1500).add(2500).add(256).add(1024 * times).add(3)
        .add(19 * times)
      if (partition % 2 == 0) subtask.addNull() else subtask.add(700)
      subtask.add(4500)
    }
    SparkListenerCheckpoint(report)
  }
}
