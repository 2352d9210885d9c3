// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.common.Settings

class DriverPythonSuite extends AnyFunSuite {
  private val sources = Seq(
    "conf" -> Settings.Python,
    "settings" -> Settings.Python,
    "conf" -> "spark.pyspark.driver.python",
    "conf" -> "spark.pyspark.python",
    "environment" -> "PYSPARK_DRIVER_PYTHON",
    "environment" -> "PYSPARK_PYTHON")

  private def choose(set: Seq[((String, String), String)]): String = {
    def in(where: String) = set.collect { case ((`where`, key), value) => key -> value }.toMap
    DriverPython.choose(in("settings"), in("conf").get, in("environment"))
  }

  test("each source comes before all that follow it") {
    val all = sources.zipWithIndex.map { case (source, i) => source -> s"/python-$i" }
    all.indices.foreach(first => assert(choose(all.drop(first)) == s"/python-$first"))
    assert(choose(Nil) == "python3")
  }

  test("the program of a notebook is no Python") {
    val worker = ("environment", "PYSPARK_PYTHON") -> "/opt/python"
    Seq("jupyter", "/opt/bin/jupyter-lab", "ipython3", "").foreach { program =>
      assert(choose(Seq(("environment", "PYSPARK_DRIVER_PYTHON") -> program, worker)) == "/opt/python")
    }
    assert(choose(Seq(("environment", "PYSPARK_DRIVER_PYTHON") -> "/opt/jupyter/bin/python", worker)) ==
      "/opt/jupyter/bin/python")
    assert(choose(Seq(("environment", "PYSPARK_PYTHON") -> "")) == "python3")
  }
}

class SettingsCheckSuite extends AnyFunSuite {
  test("keys that may be meant for us go to the coordinator, and no others") {
    val ours = Seq(Settings.AckThreshold, "spark.sql.streaming.statestor.chkpt.store", "spark.CKPT.store",
      "spark.sql.stateStore.retained", "spark.sql.streaming.checkpointLocation")
    val others = Seq("spark.hadoop.fs.s3a.secret.key", "spark.app.name", "spark.sql.shuffle.partitions")
    val sent = SettingsCheck.request((ours ++ others).map(_ -> "x").toMap).json.path("settings")
    assert(ours.forall(sent.path(_).asText() == "x"))
    assert(sent.size() == ours.size)
  }
}

class OtherProviderWarningSuite extends AnyFunSuite {
  private val ours = "org.apache.spark.sql.ckpt.CheckpointStateStoreProvider"
  private val spark = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"

  test("a query that continues with another provider than its session sets is named, with the remedy") {
    val text = OtherProviderWarning.text(ours, spark, "/there").get
    assert(Seq("/there", spark, ours, "spark-ckpt import /there").forall(text.contains))
  }

  test("there is nothing to say where the session asks for another one, or has what it asks for") {
    assert(OtherProviderWarning.text(ours, ours, "/there").isEmpty)
    assert(OtherProviderWarning.text(spark, spark, "/there").isEmpty)
    assert(OtherProviderWarning.text(spark, ours, "/there").isEmpty)
  }
}
