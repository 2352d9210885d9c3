// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

import scala.xml.Node

import jakarta.servlet.http.HttpServletRequest

import org.apache.spark.ui.{UIUtils, WebUIPage}

/**
 * A page about one run of a query, with links to the others about it.
 *
 * @param name  name of the page in its address
 * @param title title of the page
 */
private[ui] abstract class RunPage(parent: CheckpointTab, name: String, title: String) extends WebUIPage(name) {

  override def render(request: HttpServletRequest): Seq[Node] =
    UIUtils.headerSparkPage(request, title, content(request), parent)

  /** What the page shows below its links. */
  protected def about(request: HttpServletRequest, row: RunRow): Seq[Node]

  private def content(request: HttpServletRequest): Seq[Node] =
    Option(request.getParameter("run")).flatMap(parent.status.run) match {
      case None => Cells.nothing("This run has no checkpoints, or too many runs have followed it.")
      case Some(run) =>
        val row = new RunRow(run)
        Cells.facts("Query" -> Cells.text(row.name), "Run ID" -> Cells.text(run.runId)) ++
          links(request, run.runId) ++ about(request, row)
    }

  private def links(request: HttpServletRequest, runId: String): Seq[Node] =
    <ul class="nav nav-tabs mb-3" id="run-pages">{RunPage.All.map { case (page, text) =>
      <li class="nav-item">
        <a class={if (page == name) "nav-link active" else "nav-link"}
          href={parent.address(request, page, "run" -> runId)}>{text}</a>
      </li>
    }}</ul>
}

private[ui] object RunPage {
  private val All = Seq(QueryPage.Name -> "History", SummaryPage.Name -> "Summary", StatePage.Name -> "State",
    TimelinePage.Name -> "Timeline", ConfigurationPage.Name -> "Configuration")
}
