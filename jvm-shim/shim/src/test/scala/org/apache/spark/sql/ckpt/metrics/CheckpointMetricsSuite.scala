// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.metrics

import java.util.Properties

import scala.jdk.CollectionConverters._

import com.codahale.metrics.{Counter, Gauge, MetricRegistry}
import com.fasterxml.jackson.databind.node.ObjectNode
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.SparkConf
import org.apache.spark.metrics.MetricsSystem
import org.apache.spark.metrics.sink.Sink
import org.apache.spark.sql.ckpt.SparkListenerCheckpoint
import org.apache.spark.sql.ckpt.bridge.SideProcessStatus
import org.apache.spark.sql.ckpt.ui.SampleReports
import org.apache.spark.sql.ckpt.ui.SampleReports._

class CheckpointMetricsSuite extends AnyFunSuite {

  private class Process extends SideProcessStatus {
    var pid: Option[Long] = None
    var restarts = 0L
    var hung = 0L
    var openRequests = 0
  }

  /** The metrics of an application, as a sink of Spark sees them. */
  private class Application {
    private val conf = new SparkConf(false).set("spark.app.id", "app").set("spark.executor.id", "driver")
      .set("spark.metrics.conf.*.sink.seen.class", classOf[SeenRegistry].getName)
    private val system = MetricsSystem.createMetricsSystem("driver", conf)
    system.start(registerStaticSources = false)
    private val registry = SeenRegistry.last
    val process = new Process
    val metrics = new CheckpointMetrics(system, process)

    def report(events: SparkListenerCheckpoint*): Unit = events.foreach(event => metrics.reported(event.report))

    def of(query: String): Map[String, Double] = below(s"app.driver.sparkCkpt.$query.checkpoints.")

    def driver: Map[String, Double] = below("app.driver.sparkCkptDriver.")

    private def below(prefix: String): Map[String, Double] = registry.getMetrics.asScala.collect {
      case (name, gauge: Gauge[_]) if name.startsWith(prefix) =>
        name.stripPrefix(prefix) -> gauge.getValue.asInstanceOf[Double]
      case (name, counter: Counter) if name.startsWith(prefix) => name.stripPrefix(prefix) -> counter.getCount.toDouble
    }.toMap
  }

  private def application(test: Application => Unit): Unit = test(new Application)

  private val Another = "00000000-0000-0000-0000-000000000002"

  test("a query that has no checkpoint yet has numbers only") {
    application { app =>
      app.metrics.began(Run, "id", Some("q"))
      val figures = app.of("q")
      assert(figures("numberOfInProgressCheckpoints") == 0 && figures("totalNumberOfCheckpoints") == 0)
      assert(figures("lastCheckpointDuration").isNaN && figures("generation").isNaN)
    }
  }

  test("figures follow the reports") {
    application { app =>
      app.metrics.began(Run, "id", Some("q"))
      app.report(restored(), triggered(8))
      assert(app.of("q")("numberOfInProgressCheckpoints") == 1)
      assert(app.of("q")("lastCompletedCheckpointId") == 107)
      val done = completed(8)
      done.report.asInstanceOf[ObjectNode].put("files_to_delete", 5).put("files_left_behind", 6)
      app.report(done, triggered(9), failed(9))
      val figures = app.of("q")
      val expected = Map("totalNumberOfCheckpoints" -> 2, "numberOfInProgressCheckpoints" -> 0,
        "numberOfCompletedCheckpoints" -> 1, "numberOfFailedCheckpoints" -> 1, "numberOfRestoredCheckpoints" -> 1,
        "numberOfStorageFailures" -> 2, "numberOfBaseFailures" -> 0, "lastCompletedCheckpointId" -> 108,
        "lastCheckpointDuration" -> 70, "lastCheckpointPublishDuration" -> 10, "lastCheckpointSize" -> 1024,
        "lastCheckpointFullSize" -> 4096, "lastCheckpointRows" -> 77, "lastCheckpointChainLength" -> 3,
        "lastCheckpointTriggeredTimestamp" -> 9000, "lastCheckpointCompletedTimestamp" -> 8070,
        "lastCheckpointFailedTimestamp" -> 9090, "lastCheckpointRestoreTimestamp" -> 6, "generation" -> 1,
        "filesToDelete" -> 5, "filesLeftBehind" -> 6)
      assert(figures == expected.map { case (name, value) => name -> value.toDouble })
    }
  }

  test("a restarted side process reports the checkpoint in progress again, and may have lost the end of one") {
    application { app =>
      app.metrics.began(Run, "id", Some("q"))
      app.report(triggered(1), triggered(1), completed(1), completed(2))
      assert(app.of("q")("totalNumberOfCheckpoints") == 2)
      assert(app.of("q")("numberOfCompletedCheckpoints") == 2)
    }
  }

  test("metrics go with their query, and those of others stay") {
    application { app =>
      app.metrics.began(Run, "id", Some("orders"))
      app.metrics.began(Another, "another id", Some("orders-2"))
      assert(app.driver("numberOfActiveRuns") == 2)
      app.metrics.ended(Run, None)
      assert(app.of("orders").nonEmpty)
      app.metrics.closed(Run)
      assert(app.of("orders").isEmpty && app.of("orders_2").nonEmpty)
      assert(app.driver.nonEmpty && app.driver("numberOfActiveRuns") == 1)
      app.report(completed(1))
      assert(app.of("orders").isEmpty)
    }
  }

  test("a query that starts again keeps its name, even if the end of the run before comes late") {
    application { app =>
      app.metrics.began(Run, "id", Some("q"))
      app.metrics.began(Another, "id", Some("q"))
      app.metrics.ended(Run, None)
      app.metrics.closed(Run)
      app.report(completed(1, run = Another))
      assert(app.of("q")("numberOfCompletedCheckpoints") == 1)
    }
  }

  test("queries without a name, or with one in use, have their id") {
    application { app =>
      app.metrics.began("1", "a-b", None)
      app.metrics.began("2", "c-d", Some("x y"))
      app.metrics.began("3", "e-f", Some("x.y"))
      app.report(completed(1, run = "3"))
      assert(Seq("a_b", "x_y", "x_y_e_f").forall(app.of(_).nonEmpty))
      assert(Seq("x_y_e_f", "x_y").map(app.of(_)("numberOfCompletedCheckpoints")) == Seq(1, 0))
    }
  }

  test("the driver counts failed checkpoints, but not those of a stopped query") {
    application { app =>
      Seq(Run, Another).foreach(run => app.metrics.began(run, s"id of $run", Some(s"q$run")))
      app.report(triggered(1), failed(1))
      app.metrics.ended(Run, Some("java.lang.Exception: out of luck"))
      app.report(failed(2))
      app.metrics.ended(Another, None)
      app.report(failed(1, run = Another))
      Seq(Run, Another).foreach(app.metrics.closed)
      assert(app.driver("numberOfFailedCheckpoints") == 2 && app.driver("numberOfFencedRuns") == 0)
    }
  }

  test("a run is fenced once, whether its checkpoint or its end says so") {
    application { app =>
      Seq("1", "2", "3").foreach(run => app.metrics.began(run, run, None))
      app.report(failed(1, run = "1", cause = "fenced: by another"))
      app.metrics.ended("1", Some("Caused by: CheckpointFailure: [FencedError] another driver"))
      assert(app.driver("numberOfFencedRuns") == 1)
      app.metrics.ended("2", Some("java.lang.Exception: [LogFencedError] was rolled back"))
      app.metrics.ended("3", Some("java.lang.Exception: the FencedError of another program"))
      assert(app.driver("numberOfFencedRuns") == 2)
    }
  }

  test("figures of the side process are read when they are asked for") {
    application { app =>
      assert(app.driver("sideProcessRss").isNaN)
      app.process.pid = Some(ProcessHandle.current().pid())
      app.process.restarts = 3
      app.process.openRequests = 4
      assert(app.driver("sideProcessRestarts") == 3 && app.driver("openRequests") == 4)
      assert(app.driver("sideProcessRss") > 20e6)
      assert(DriverSource.residentBytes(Long.MaxValue).isNaN)
    }
  }

  test("no report does harm") {
    application { app =>
      app.metrics.began(Run, "id", Some("q"))
      app.metrics.reported(SampleReports.triggered(1).report.deepCopy[ObjectNode]().put("status", "of a later release"))
      app.metrics.reported(null)
      assert(app.of("q")("totalNumberOfCheckpoints") == 0)
    }
  }
}

/** The registry behind a metrics system. */
class SeenRegistry(properties: Properties, registry: MetricRegistry) extends Sink {
  SeenRegistry.last = registry

  override def start(): Unit = ()
  override def stop(): Unit = ()
  override def report(): Unit = ()
}

object SeenRegistry {
  @volatile var last: MetricRegistry = _
}
