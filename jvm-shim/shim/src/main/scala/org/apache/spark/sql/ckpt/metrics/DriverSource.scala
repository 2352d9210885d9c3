// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.metrics

import java.io.IOException
import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import com.codahale.metrics.{Counter, Gauge, MetricRegistry}

import org.apache.spark.metrics.source.Source
import org.apache.spark.sql.ckpt.bridge.SideProcessStatus

/**
 * Figures of the driver: its side process, and counts over all queries. They stay when a query ends, so that a failure
 * which ends it is still seen.
 *
 * @param process    the side process
 * @param activeRuns number of runs with a source of their own
 */
private[metrics] final class DriverSource(process: SideProcessStatus, activeRuns: () => Int) extends Source {
  override val metricRegistry = new MetricRegistry
  override val sourceName: String = "sparkCkptDriver"

  val failedCheckpoints: Counter = metricRegistry.counter("numberOfFailedCheckpoints")
  val fencedRuns: Counter = metricRegistry.counter("numberOfFencedRuns")

  metricRegistry.register("sideProcessRestarts", new Counter {
    override def getCount: Long = process.restarts
  })
  gauge("sideProcessRss")(process.pid.fold(Double.NaN)(DriverSource.residentBytes))
  gauge("openRequests")(process.openRequests.toDouble)
  gauge("numberOfActiveRuns")(activeRuns().toDouble)

  private def gauge(name: String)(value: => Double): Unit =
    metricRegistry.register(name, new Gauge[Double] { override def getValue: Double = value })
}

private[metrics] object DriverSource {
  private val ResidentSize = "VmRSS:\\s+(\\d+) kB".r

  /** Resident memory of a process; NaN if it has ended, or on an operating system other than Linux. */
  def residentBytes(pid: Long): Double =
    try {
      Files.readAllLines(Path.of(s"/proc/$pid/status")).asScala
        .collectFirst { case ResidentSize(kilobytes) => kilobytes.toDouble * 1024 }.getOrElse(Double.NaN)
    } catch {
      case _: IOException => Double.NaN
    }
}
