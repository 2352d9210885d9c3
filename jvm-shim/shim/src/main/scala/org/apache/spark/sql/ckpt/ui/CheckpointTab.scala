// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

import java.net.URLEncoder
import java.nio.charset.StandardCharsets.UTF_8

import jakarta.servlet.http.HttpServletRequest

import org.apache.spark.ui.{SparkUI, SparkUITab, UIUtils}

/** The tab "Checkpoints" of Spark's UI. */
private[ui] final class CheckpointTab(val status: CheckpointStatusStore, parent: SparkUI)
    extends SparkUITab(parent, CheckpointTab.Prefix) {

  attachPage(new OverviewPage(this))
  attachPage(new QueryPage(this))
  attachPage(new CheckpointPage(this))
  attachPage(new SummaryPage(this))
  attachPage(new StatePage(this))
  attachPage(new TimelinePage(this))
  attachPage(new ConfigurationPage(this))
  parent.attachTab(this)

  /** Address of a page of this tab, with its parameters. */
  def address(request: HttpServletRequest, page: String, parameters: (String, String)*): String = {
    val query = parameters.map { case (name, value) => s"$name=${URLEncoder.encode(value, UTF_8)}" }
    s"${UIUtils.prependBaseUri(request, basePath)}/$prefix/$page?${query.mkString("&")}"
  }
}

private[ui] object CheckpointTab {
  val Prefix = "checkpoints"
}
