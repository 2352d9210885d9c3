// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import java.util.UUID

import scala.concurrent.duration.FiniteDuration
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.JsonNode
import org.apache.hadoop.fs.Path

import org.apache.spark.{SparkContext, SparkEnv, SPARK_VERSION, TaskContext}
import org.apache.spark.deploy.SparkHadoopUtil
import org.apache.spark.internal.Logging
import org.apache.spark.metrics.MetricsSystem
import org.apache.spark.sql.ckpt.bridge.{HadoopFiles, PythonBridge}
import org.apache.spark.sql.ckpt.common.{CheckpointFailure, EntryPoints, OwnThreads, Settings}
import org.apache.spark.sql.ckpt.compat.StreamingPlans
import org.apache.spark.sql.ckpt.metrics.CheckpointMetrics
import org.apache.spark.sql.ckpt.protocol.Coordinator
import org.apache.spark.sql.ckpt.ui.CheckpointUI
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.internal.SQLConf

/**
 * Start of the driver's side, once per Spark application. Spark constructs the provider on the driver while it plans a
 * batch, before any of its tasks runs. So the provider class name is the only setting that a user needs.
 */
private[ckpt] object CheckpointDriver extends Logging {
  private final class Running(val context: SparkContext, val requests: CheckpointRequests)

  private val OffsetLog = "offsets"
  private val CommitLog = "commits"

  @volatile private var running: Option[Running] = None
  @volatile private var session: Option[SparkSession] = None
  private val settingsCheck = new SettingsCheck
  private val otherProvider = new OtherProviderWarning

  /**
   * Hook in the provider's constructor. On the thread of a streaming query in the driver it starts the endpoint;
   * anywhere else it does nothing. The statistics page of Spark's UI constructs providers too, and access to the
   * session's shared state from there would recurse without end.
   */
  def onProviderConstructed(): Unit =
    queryHere.foreach { case (context, queryId) =>
      val active = SparkSession.getActiveSession
      if (active.isDefined) session = active
      val settings = SQLConf.get.getAllConfs
      val requests = ensureStarted(context, settings)
      active.flatMap(RunningBatch.find(_, UUID.fromString(queryId))).foreach(requests.runs.saw)
      settingsCheck.begin(requests.bridge, settings)
    }

  /**
   * Refuses a query that cannot have checkpoints, or has an invalid setting. Called when Spark asks a provider for its
   * metrics, the last call before a batch runs.
   */
  def checkQuery(): Unit =
    for {
      (_, queryId) <- queryHere
      active <- SparkSession.getActiveSession
      query <- RunningBatch.find(active, UUID.fromString(queryId))
    } {
      if (StreamingPlans.realTimeMs(query.trigger).isDefined) {
        RealTimeMode.check(SQLConf.get.getAllConfs, active.sessionState.newHadoopConf())
      }
      if (lacksExtension(active) && query.logicalPlan.exists(StreamingPlans.transformsWithState)) throw withoutExtension
      settingsCheck.await(SQLConf.get.getAllConfs)
    }

  /** Hook for the plan of a batch with state, whatever its provider. */
  def warnOfOtherProvider(): Unit =
    for {
      (_, queryId) <- queryHere
      active <- SparkSession.getActiveSession
      query <- RunningBatch.find(active, UUID.fromString(queryId))
    } otherProvider.check(query)

  /**
   * Hook for a new entry of Spark's offset log, on the thread of its query. In real-time mode the batch has ended by
   * then, and its checkpoint must be durable before the entry.
   *
   * @return the action to run before the entry is put, with its text; None for any other entry
   */
  def beforeOffsets(entry: Path): Option[String => Unit] =
    for {
      (query, batchId) <- endingBatch(entry, OffsetLog)
      requests <- synchronized(running).map(_.requests)
    } yield text => requests.endOffsets(query.runId.toString, batchId, text, Settings.bridgeTimeout(settingsOf(query)))

  /**
   * Hook for a new entry of Spark's offset log, on the thread of its query: between two batches, unless the query is in
   * real-time mode. The batch begins with another number of partitions if that was asked for.
   */
  def beforeBatch(entry: Path): Unit =
    for {
      requests <- running.map(_.requests) if !requests.rescales.isEmpty
      (query, batchId) <- batchOf(entry, OffsetLog)
      if StreamingPlans.realTimeMs(query.trigger).isEmpty
      partitions <- requests.rescales.take(query.runId.toString)
    } RunningRescale.begin(query, batchId, partitions, requests, Settings.bridgeTimeout(settingsOf(query)))

  /**
   * Hook for a new entry of Spark's commit log. A start in real-time mode deletes offsets without a commit, and comes
   * before the claim that fences this driver.
   *
   * @param read content of a file; None without one
   * @throws CheckpointFailure if the offsets of the batch are no longer those of this run
   */
  def beforeCommit(entry: Path, read: Path => Option[String]): Unit =
    endingBatch(entry, CommitLog).foreach { case (query, batchId) =>
      val offsets = new Path(new Path(entry.getParent.getParent, OffsetLog), batchId.toString)
      if (read(offsets) != RunningBatch.offsetsOf(query, batchId)) {
        throw RealTimeMode.replacedOffsets(query.resolvedCheckpointRoot, batchId)
      }
    }

  /** The run and the batch of an entry, if the batch ends in real-time mode and its state is ours. */
  private def endingBatch(entry: Path, log: String): Option[(StreamExecution, Long)] =
    batchOf(entry, log).filter { case (query, _) => RunningBatch.isInRealTime(query) }

  /** The run and the batch of an entry of a log, on the thread of the query. */
  private def batchOf(entry: Path, log: String): Option[(StreamExecution, Long)] =
    for {
      batchId <- if (entry.getParent.getName == log) entry.getName.toLongOption else None
      (_, queryId) <- queryHere
      active <- SparkSession.getActiveSession
      query <- RunningBatch.find(active, UUID.fromString(queryId))
      if entry.getParent.getParent.toUri.getPath == new Path(query.resolvedCheckpointRoot).toUri.getPath
    } yield (query, batchId)

  private def settingsOf(query: StreamExecution): Map[String, String] =
    StreamingPlans.sessionOfRun(query).sessionState.conf.getAllConfs

  /** Spark refuses `transformWithState` with our provider a little later, without naming the remedy. */
  private def lacksExtension(session: SparkSession): Boolean =
    session.sessionState.conf.stateStoreProviderClass == EntryPoints.Provider &&
      !session.sessionState.columnarRules.contains(StatefulOperators)

  private def withoutExtension: CheckpointFailure = new CheckpointFailure("SessionConfigError",
    "Spark's operator of transformWithState rejects this state-store provider: start the session with " +
      s"spark.sql.extensions=${EntryPoints.Extensions}")

  /** Id of the streaming query that runs on this thread. */
  private def queryHere: Option[(SparkContext, String)] =
    if (TaskContext.get() != null || !isDriver) None
    else SparkContext.getActive.flatMap { context =>
      Option(context.getLocalProperty(StreamExecution.QUERY_ID_KEY)).map((context, _))
    }

  /** True if a run of a query is active in this driver, in any session. Its state must be ours. */
  def isActive(runId: String): Boolean = synchronized(running).exists(_.requests.runs.active(runId).isDefined)

  /** Start for a store without a query, in the driver's JVM. */
  def ensureStartedForStore(settings: Map[String, String]): Unit =
    if (isDriver) SparkContext.getActive.foreach(ensureStarted(_, settings))

  /** Coordinator for stores in a JVM without a Spark application, with a side process of its own. */
  lazy val withoutApplication: CheckpointRequests = {
    val executors = new RegisteredExecutors
    val files = new HadoopFiles(_ => SparkHadoopUtil.get.conf)
    requestsOver(pythonExecutable(None, Map.empty), SPARK_VERSION, files, Settings.bridgeSilence(Map.empty), executors,
      new SeenRuns, None, _ => ())
  }

  private def isDriver: Boolean = SparkEnv.get != null && SparkEnv.get.executorId == SparkContext.DRIVER_IDENTIFIER

  private def ensureStarted(context: SparkContext, settings: Map[String, String]): CheckpointRequests = synchronized {
    if (!running.exists(_.context eq context)) {
      val executors = new RegisteredExecutors
      val runs = new SeenRuns
      val files = new HadoopFiles(path =>
        runs.ofPath(path).map(StreamingPlans.sessionOfRun).orElse(session)
          .fold(context.hadoopConfiguration)(_.sessionState.newHadoopConf()))
      val python = pythonExecutable(Some(context), settings)
      val requests = requestsOver(python, context.version, files, silenceOf(context, settings), executors, runs,
        Some(context.env.metricsSystem), CheckpointUI.post(context, _))
      context.env.rpcEnv.setupEndpoint(Coordinator.Endpoint, new CheckpointEndpoint(context.env.rpcEnv, requests))
      context.addSparkListener(new TaskEndListener(requests))
      CheckpointUI.attach(context)
      running = Some(new Running(context, requests))
      warmUp(requests.bridge)
    }
    running.get.requests
  }

  private def requestsOver(
      python: String,
      sparkVersion: String,
      files: HadoopFiles,
      silence: FiniteDuration,
      executors: RegisteredExecutors,
      runs: SeenRuns,
      system: Option[MetricsSystem],
      post: JsonNode => Unit): CheckpointRequests = {
    lazy val requests: CheckpointRequests =
      new CheckpointRequests(bridge, executors, runs, system.map(new CheckpointMetrics(_, bridge)), post)
    lazy val bridge: PythonBridge =
      new PythonBridge(python, sparkVersion, files, silence, notification => requests.notified(notification))
    requests
  }

  /**
   * Python takes a while to start, so it starts while Spark plans the first batch. The first request shows an error.
   */
  private def warmUp(bridge: PythonBridge): Unit =
    OwnThreads.daemon("spark-ckpt-bridge-start") {
      try bridge.warmUp() catch { case NonFatal(e) => logDebug("the side process did not start", e) }
    }.start()

  /** The application ends: active queries are suspended. */
  def stop(requests: CheckpointRequests): Unit = {
    synchronized {
      if (running.exists(_.requests eq requests)) {
        running = None
        session = None
      }
    }
    requests.suspendAll()
    requests.bridge.close()
  }

  /** As with Python, the application's own setting comes first. The coordinator refuses an invalid one. */
  private def silenceOf(context: SparkContext, settings: Map[String, String]): FiniteDuration = {
    val ofApplication = context.getConf.getOption(Settings.BridgeSilence).map(Settings.BridgeSilence -> _)
    try Settings.bridgeSilence(settings ++ ofApplication)
    catch { case _: CheckpointFailure => Settings.bridgeSilence(Map.empty) }
  }

  private def pythonExecutable(context: Option[SparkContext], settings: Map[String, String]): String =
    DriverPython.choose(settings, key => context.flatMap(_.getConf.getOption(key)), System.getenv().asScala.toMap)
}
