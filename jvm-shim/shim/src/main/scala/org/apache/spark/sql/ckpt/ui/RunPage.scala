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
