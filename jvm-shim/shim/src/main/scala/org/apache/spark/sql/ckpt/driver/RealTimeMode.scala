// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.ckpt.common.{CheckpointFailure, EntryPoints, Redaction, Settings}
import org.apache.spark.sql.ckpt.compat.{RealTimeStart, RealTimeStarts}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf

/**
 * Conditions for state in real-time mode. Spark permits only its own RocksDB provider there: it refuses a session that
 * sets another one (`StreamingQueryManager.throwIfConfsAreRealTimeModeIncompatible`). But it continues a location with
 * the provider that began it, so a location of ours can run in a session without that setting.
 */
private[ckpt] object RealTimeMode extends Logging {

  /** Rule of the analyzer. It sees a query before Spark creates or changes any of its files. */
  final class Check(session: SparkSession) extends Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = {
      RealTimeStarts.of(plan).foreach(checkStart(session, _))
      plan
    }
  }

  private def checkStart(session: SparkSession, start: RealTimeStart): Unit = {
    val conf = session.sessionState.conf
    val location = start.location.map(new Path(_)).orElse {
      conf.checkpointLocation.flatMap(root => start.name.map(new Path(root, _)))
    }
    location.flatMap(providerOf(session, start, _)) match {
      case Some(Provider.Ours) =>
        check(conf.getAllConfs, start.hadoopConf)
        if (start.transformsWithState && conf.getConfString(AllowlistKey, "true").toBoolean) throw withoutOurOperator
      case Some(_) =>
      case None => if (!conf.contains(Provider.Key)) logWarning(withoutUs(location.fold("a new location")(_.toString)))
    }
  }

  private def providerOf(session: SparkSession, start: RealTimeStart, location: Path): Option[String] = {
    val log = new Path(location, "offsets")
    if (log.getFileSystem(start.hadoopConf).exists(log)) RealTimeStarts.settingIn(session, log, Provider.Key) else None
  }

  /**
   * Refuses a run with state of ours unless it can have checkpoints.
   *
   * @throws CheckpointFailure that says what to do
   */
  def check(settings: Map[String, String], hadoopConf: Configuration): Unit = {
    if (!RealTimeStarts.areSupported) throw unsupported
    if (!Settings.permitsRealTimeMode(settings)) throw notPermitted
    val manager = EntryPoints.LogFileManager
    if (hadoopConf.get(FileManagerKey) != manager) throw withoutFileManager(manager)
  }

  private val FileManagerKey = SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key

  /** `SQLConf` of Spark 4.0 has no such entry. */
  private val AllowlistKey = "spark.sql.streaming.realTimeMode.allowlistCheck"

  private def unsupported = new CheckpointFailure("SessionConfigError",
    "a query with state cannot run in real-time mode before Spark 4.3. Start it with another trigger")

  private def notPermitted = new CheckpointFailure("SessionConfigError",
    "state of spark-ckpt in real-time mode is experimental: set " +
      s"${Settings.RealTimeMode}=${Settings.Experimental} to permit it (docs/real-time-mode.md names its limits), or " +
      "start the query with another trigger")

  private def withoutFileManager(manager: String) = new CheckpointFailure("SessionConfigError",
    s"state in real-time mode needs $FileManagerKey=$manager, which 'configure' sets: a checkpoint completes when " +
      "Spark writes the offsets of its batch")

  private def withoutOurOperator = new CheckpointFailure("SessionConfigError",
    s"transformWithState in real-time mode needs $AllowlistKey=false: Spark's list has its own operator, which runs " +
      "with its RocksDB provider only, and not the one that our extension puts in its place")

  /** Another driver has replaced the offsets of a batch that this driver is about to commit. */
  def replacedOffsets(location: String, batchId: Long) = new CheckpointFailure("OffsetsReplacedError",
    s"offsets/$batchId in ${Redaction.redacted(location)} are not those of this run: another driver has started the " +
      "query, which deletes offsets without a commit in real-time mode. This run does not commit the batch. Run one " +
      "driver per checkpoint location")

  private[driver] def withoutUs(location: String): String =
    s"this query will keep its state in Spark's RocksDB provider, WITHOUT spark-ckpt: that is Spark's choice for a " +
      s"new query in real-time mode (${Redaction.redacted(location)}), and a location keeps its provider. To use " +
      s"spark-ckpt, run the first batch with another trigger in a session with ${Provider.Key}=${Provider.Ours} " +
      "(docs/real-time-mode.md)"
}
