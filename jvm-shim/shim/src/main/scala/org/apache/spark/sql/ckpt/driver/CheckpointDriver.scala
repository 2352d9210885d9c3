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
package org.apache.spark.sql.ckpt.driver

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.spark.{SparkContext, SparkEnv, TaskContext}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.Settings
import org.apache.spark.sql.ckpt.bridge.PythonBridge
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.internal.SQLConf

/**
 * Starts the driver's parts, once per Spark application. Spark constructs the provider on the driver while it plans each
 * batch, before any task of it runs; that makes the provider class name the only setting a user needs.
 */
private[ckpt] object CheckpointDriver extends Logging {
  private final class Running(val context: SparkContext, val endpoint: CheckpointEndpoint)

  private var running: Option[Running] = None
  @volatile private var session: Option[SparkSession] = None

  /**
   * Called by the constructor of the provider, wherever that runs. On the thread of a streaming query in the driver it
   * starts the endpoint; anywhere else it does nothing: the statistics page of Spark's UI constructs providers too, and
   * looking at the session's shared state from there would come back here without end.
   */
  def onProviderConstructed(): Unit =
    if (TaskContext.get() == null && isDriver) {
      SparkContext.getActive
        .filter(_.getLocalProperty(StreamExecution.QUERY_ID_KEY) != null)
        .foreach { context =>
          SparkSession.getActiveSession.foreach(active => session = Some(active))
          ensureStarted(context, SQLConf.get.getAllConfs)
        }
    }

  /** For a store with no query behind it, in the JVM of the driver. */
  def ensureStartedForStore(settings: Map[String, String]): Unit =
    if (isDriver) SparkContext.getActive.foreach(ensureStarted(_, settings))

  private def isDriver: Boolean = SparkEnv.get != null && SparkContext.isDriver(SparkEnv.get.executorId)

  private def ensureStarted(context: SparkContext, settings: Map[String, String]): Unit = synchronized {
    if (!running.exists(_.context eq context)) {
      val executors = new RegisteredExecutors
      val bridge = new PythonBridge(pythonExecutable(context, settings), context.version, executors.tell)
      val endpoint = new CheckpointEndpoint(context.env.rpcEnv, bridge, executors, () => session)
      context.env.rpcEnv.setupEndpoint(CheckpointEndpoint.Name, endpoint)
      context.addSparkListener(new TaskEndListener(endpoint))
      running = Some(new Running(context, endpoint))
      warmUp(bridge)
    }
  }

  /** Python takes a while to start: it does so while Spark plans the first batch. An error shows with the first request. */
  private def warmUp(bridge: PythonBridge): Unit = {
    val thread = new Thread(() => {
      try bridge.warmUp() catch { case NonFatal(e) => logDebug("the side process did not start", e) }
    }, "spark-ckpt-bridge-start")
    thread.setDaemon(true)
    thread.start()
  }

  /** The application ends: queries that are active now are suspended. */
  def stop(endpoint: CheckpointEndpoint): Unit = {
    synchronized {
      if (running.exists(_.endpoint eq endpoint)) {
        running = None
        session = None
      }
    }
    endpoint.suspendAll()
    endpoint.bridge.close()
  }

  /** As PySpark chooses the driver's Python, with our own setting before all. */
  private def pythonExecutable(context: SparkContext, settings: Map[String, String]): String = {
    val environment = System.getenv().asScala
    settings.get(Settings.Python)
      .orElse(context.getConf.getOption(Settings.Python))
      .orElse(context.getConf.getOption("spark.pyspark.driver.python"))
      .orElse(context.getConf.getOption("spark.pyspark.python"))
      .orElse(environment.get("PYSPARK_PYTHON"))
      .getOrElse("python3")
  }
}
