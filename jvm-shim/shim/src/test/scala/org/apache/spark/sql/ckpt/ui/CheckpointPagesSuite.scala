// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

import java.lang.reflect.{InvocationHandler, Method, Proxy}

import scala.jdk.CollectionConverters._
import scala.xml.{Elem, NodeSeq, XML}

import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode}
import jakarta.servlet.http.HttpServletRequest
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.{SecurityManager, SparkConf}
import org.apache.spark.sql.ckpt.SparkListenerCheckpoint
import org.apache.spark.status.{AppStatusStore, ElementTrackingStore}
import org.apache.spark.ui.{SparkUI, UIUtils}
import org.apache.spark.util.kvstore.InMemoryStore

class CheckpointPagesSuite extends AnyFunSuite {
  import SampleReports._

  private final class Tab(events: Seq[SparkListenerCheckpoint], settings: (String, String)*) {
    private val conf = new SparkConf(false).setAll(settings)
    private val store = new ElementTrackingStore(new InMemoryStore, conf)
    private val listener = new CheckpointStatusListener(conf, store)
    events.foreach(listener.onOtherEvent)
    private val ui = SparkUI.create(None, new AppStatusStore(store), conf, new SecurityManager(conf), "app", "/base", 0)
    new CheckpointHistoryServerPlugin().setupUI(ui)

    val isAttached: Boolean = ui.getTabs.exists(_.name == "Checkpoints")

    def markup(page: String, parameters: (String, String)*): String = {
      val tab = ui.getTabs.collectFirst { case tab: CheckpointTab => tab }.get
      val path = s"checkpoints/$page".stripSuffix("/")
      tab.pages.find(_.prefix == path).get.render(request(parameters.toMap)).mkString
    }

    def render(page: String, parameters: (String, String)*): Elem = parsed(markup(page, parameters: _*))
  }

  /** A page as a browser takes it: Spark's links have bare ampersands. */
  private def parsed(markup: String): Elem =
    XML.loadString(markup.replaceAll("(?s)<script.*?</script>", "").replace("&nbsp;", " ")
      .replaceAll("&(?!(amp|lt|gt|quot|#\\w+);)", "&amp;"))

  private def request(parameters: Map[String, String]): HttpServletRequest = {
    val handler = new InvocationHandler {
      override def invoke(proxy: Object, method: Method, arguments: Array[Object]): Object = method.getName match {
        case "getParameter" => parameters.getOrElse(arguments(0).toString, null)
        case "getParameterMap" => new java.util.HashMap[String, Array[String]]()
        case "getHeader" => null
        case "hashCode" => Int.box(1)
        case _ => null
      }
    }
    Proxy.newProxyInstance(getClass.getClassLoader, Array(classOf[HttpServletRequest]), handler)
      .asInstanceOf[HttpServletRequest]
  }

  private def cells(page: NodeSeq, table: String): Seq[Seq[String]] =
    (page \\ "table").filter(node => (node \@ "id") == table).flatMap(_ \ "tbody" \ "tr")
      .map(row => (row \ "td").map(_.text.trim))

  private def links(page: NodeSeq): Seq[String] = (page \\ "a").map(_ \@ "href")

  test("an application without checkpoints has no tab in the History Server") {
    assert(!new Tab(Nil).isAttached)
    assert(new Tab(Seq(triggered(1))).isAttached)
  }

  test("the overview has a row for each run") {
    val other = "00000000-0000-0000-0000-000000000002"
    val tab = new Tab(Seq(restored(), triggered(8), completed(8), triggered(9), failed(9, cause = "no space"),
      triggered(10), triggered(1, other, "second")))
    val rows = cells(tab.render(""), "queries-table")
    assert(rows.map(_.take(9)) == Seq(
      Seq("second", other, "RUNNING", "#2", "1", "1 (0/4 acknowledged)", "0", "0", "0"),
      Seq("name", Run, "RUNNING", "#1", "3", "1 (0/4 acknowledged)", "1", "1", "1")))
    val latest = rows(1).drop(9)
    assert(latest.head.startsWith("108, batch 8 at ") && latest.head.endsWith(", 4.0 KiB, 77 rows"))
    assert(latest(1).startsWith("batch 9 at ") && latest(1).endsWith("no space"))
    assert(latest(2).startsWith("107, batch 7, by spark-ckpt evolve, at ") && latest(2).endsWith("/there/name"))
    assert(latest.drop(3) == Seq("-", "-"))
    assert(links(tab.render("")).contains(s"/base/checkpoints/query?run=$Run"))
  }

  test("the overview has the owner, whom it fenced, and acknowledgements so far") {
    val tab = new Tab(Seq(started(), triggered(1), progress(1, 3), savepoint(), started("other"), triggered(1, "other"),
      failed(1, "other", reason = "fenced")))
    val Seq(other, mine) = cells(tab.render(""), "queries-table")
    assert(mine(5) == "1 (3/4 acknowledged)" && mine(2) == "RUNNING")
    assert(mine(12).startsWith("107, batch 7 at ") && mine(12).endsWith("/backup/name"))
    assert(mine(13).startsWith("generation 2: process 12 on name, since "))
    assert(mine(13).contains("It has fenced generation 1: process 11 on other name, since "))
    assert(other(2) == "FENCED")
    val page = tab.render("query", "run" -> Run)
    assert(page.text.contains("1 (3/4 acknowledged)") && page.text.contains("run earlier"))
    assert(page.text.contains("/backup/name"))
    assert(cells(page, "history-table").map(_(3)) == Seq("3/4"))
    assert(cells(page, "history-table").head(5) == UIUtils.formatDate(1500L))
  }

  test("the page of a run says how often its coordinator hung") {
    def text(hung: Int) = new Tab(Seq(started(hung = hung), triggered(1))).render("query", "run" -> Run).text
    assert(text(0).contains("has not been found hanging"))
    assert(text(1).contains("killed and replaced once, because it gave no sign of life"))
    assert(text(3).contains("killed and replaced 3 times, because it gave no sign of life"))
  }

  test("a long cause is cut in the overview, and whole on the page of its run") {
    val tab = new Tab(Seq(triggered(1), failed(1, cause = "x" * 400)))
    val cut = cells(tab.render(""), "queries-table").head(10)
    assert(cut.endsWith("x" * 150 + " \u2026") && !cut.contains("x" * 151))
    assert(tab.render("query", "run" -> Run).text.contains("x" * 400))
  }

  test("pages of a run lead to each other") {
    val tab = new Tab(Seq(triggered(1)))
    val names = Seq("query", "summary", "state", "timeline", "configuration")
    names.foreach { name =>
      val page = tab.render(name, "run" -> Run)
      val Seq(bar) = (page \\ "ul").filter(node => (node \@ "id") == "run-pages")
      assert((bar \\ "a").map(_ \@ "href") == names.map(other => s"/base/checkpoints/$other?run=$Run"))
      assert((bar \\ "a").filter(link => (link \@ "class").contains("active")).map(_ \@ "href") ==
        Seq(s"/base/checkpoints/$name?run=$Run"))
      assert(tab.render(name, "run" -> "unknown").text.contains("no checkpoints"))
    }
  }

  test("the summary has distributions of completed checkpoints") {
    assert(new Tab(Seq(triggered(1), failed(1))).render("summary", "run" -> Run).text.contains("No checkpoint has"))
    val tab = new Tab(Seq(triggered(1), completed(1), triggered(2), failed(2), triggered(3), completed(3)))
    val page = tab.render("summary", "run" -> Run)
    assert(page.text.contains("the newest 2 of 2"))
    val rows = cells(page, "summary").map(row => row.head -> row.tail).toMap
    assert(rows("Duration") == Seq.fill(7)("70 ms") && rows("Rows") == Seq.fill(7)("77"))
    assert(rows("New size").head == "1024.0 B" && rows("Longest write").head == "0.003 ms")
    assert((page \\ "th").map(_.text.trim) ==
      Seq("Figure", "Min", "Avg", "Max", "P50", "P90", "P99", "P99.9"))
  }

  test("a run without its start has no settings") {
    assert(new Tab(Seq(triggered(1))).render("configuration", "run" -> Run).text.contains("are not known"))
    val page = new Tab(Seq(started())).render("configuration", "run" -> Run)
    val prefix = "spark.sql.streaming.stateStore.ckpt."
    assert(cells(page, "settings") ==
      Seq(Seq(s"${prefix}python", "name", "default", "-"), Seq(s"${prefix}retained", "5", "set", "2")))
    assert(page.text.contains("4 x 256") && page.text.contains("/there/name"))
  }

  test("the timeline marks stragglers and subtasks that did not acknowledge") {
    def marks(page: NodeSeq, figure: String): Seq[String] =
      (page \\ "figure").filter(node => (node \@ "id") == figure).flatMap(_ \\ "text")
        .filter(node => (node \@ "class") == "ckpt-mark").map(_.text.trim)
    val events = (1L to 3L).flatMap(n => Seq(triggered(n), completed(n, partitions = 30, slow = 7)))
    val tab = new Tab(events ++ Seq(triggered(4), failed(4), triggered(5), progress(5, 2)))
    val page = tab.render("timeline", "run" -> Run)
    assert(marks(page, "checkpoints-timeline") == Seq("in progress, 2/4 acknowledged", "aborted"))
    assert(marks(page, "subtasks-timeline") == Seq("aborted", "aborted", "aborted")) // of the newest with subtasks
    val chosen = tab.render("timeline", "run" -> Run, "key" -> s"$Run-0")
    assert(chosen.text.contains("30 subtasks of checkpoint 101, batch 1, 1 straggler"))
    assert(marks(chosen, "subtasks-timeline") == Seq("straggler"))
    val bars = (chosen \\ "g").filter(node => (node \ "title").text.startsWith("partition "))
    assert(bars.size == 30 && bars.filter(_.text.contains("straggler")).map(node => (node \ "text").head.text) ==
      Seq("partition 7"))
    assert(tab.render("timeline", "run" -> Run, "key" -> s"$Run-4").text.contains("follow at the end"))
  }

  test("the state has sizes, skew and growth") {
    assert(new Tab(Seq(triggered(1))).render("state", "run" -> Run).text.contains("No checkpoint has completed"))
    val tab = new Tab((1L to 3L).flatMap(n => Seq(triggered(n), completed(n, partitions = 200, slow = 7))))
    val page = tab.render("state", "run" -> Run)
    val Seq(store) = cells(page, "stores-table")
    assert(store.take(4) == Seq("0 name, name", "200", "77", "4.0 KiB"))
    assert(store.slice(6, 8) == Seq("19 / 19 / 1900", "66.89"))
    assert(cells(page, "partitions-table").size == 100 && cells(page, "partitions-table").head(1) == "7")
    val points = (page \\ "figure").filter(node => (node \@ "id") == "growth-bytes") \\ "circle"
    assert(points.map(_.text) == (1 to 3).map(n => s"all, batch $n: 4.0 KiB"))
    val columns = (page \\ "figure").filter(node => (node \@ "id") == "rows-0") \\ "rect"
    assert(columns.size == 200 && columns(7).text == "partition 7: 1900")
    val last = tab.render("state", "run" -> Run, "partitions.sort" -> "Partition", "partitions.page" -> "2")
    assert(cells(last, "partitions-table").map(_(1)) == (100 to 199).map(_.toString))
  }

  test("operators are sorted by figures, not by their text") {
    val page = new Tab(Seq(triggered(1), completed(1))).render("checkpoint", "key" -> s"$Run-0")
    def keys(id: String) = ((page \\ "table").filter(table => (table \@ "id") == id) \\ "td")
      .map(_ \@ "sorttable_customkey").filter(_.nonEmpty)
    assert(keys("operators") == Seq("0", "4", "1003", "1024", "4096", "3", "77"))
    assert(keys("spreads") == Seq("0", "3", "3", "-1", "3", "3", "3", "3", "3", "3"))
  }

  test("a checkpoint whose subtasks are forgotten keeps its operators") {
    val most = CheckpointStatusListener.MaxDetails
    val runs = (0 to most).map(n => s"run $n")
    val tab = new Tab(runs.flatMap(run => Seq(triggered(1, run), completed(1, run))),
      "spark.sql.streaming.ui.retainedQueries" -> "1000")
    val page = tab.render("checkpoint", "key" -> "run 0-0")
    assert(cells(page, "operators").size == 1 && page.text.contains("kept of the newest"))
    assert(tab.render("state", "run" -> "run 0").text.contains("77"))
  }

  test("the history has a row for each checkpoint, newest first") {
    val tab = new Tab(Seq(triggered(1), completed(1), triggered(2), failed(2, cause = "no space"), triggered(3)))
    val page = tab.render("query", "run" -> Run)
    val rows = cells(page, "history-table")
    assert(rows.map(row => (row(0), row(1), row(2), row(3))) == Seq(("details", "3", "IN PROGRESS", "0/4"),
      ("details", "2", "FAILED", "1/4"), ("101", "1", "COMPLETED", "4/4")))
    assert(rows(2).drop(6) == Seq("70 ms", "1024.0 B", "4.0 KiB", "77", "3", "-"))
    assert(rows(1).last == "no space" && rows(0).drop(5).forall(_ == "-"))
    assert(rows(2)(5).nonEmpty && rows(2)(5) != "-")
    assert(links(page).contains(s"/base/checkpoints/checkpoint?key=$Run-0"))
    val byStatus = tab.render("query", "run" -> Run, "history.sort" -> "Status")
    assert(cells(byStatus, "history-table").map(_(2)) == Seq("COMPLETED", "FAILED", "IN PROGRESS"))
  }

  test("a checkpoint has operators and subtasks, slowest first") {
    val tab = new Tab(Seq(triggered(1), completed(1)))
    val page = tab.render("checkpoint", "key" -> s"$Run-0")
    val Seq(operator) = cells(page, "operators")
    assert(operator.take(3) == Seq("0 name", "name", "4/4") && operator(3) != "-")
    assert(operator.drop(4) == Seq("1024.0 B", "4.0 KiB", "3", "77"))
    val micros = "0.001 ms / 0.002 ms / 0.003 ms"
    assert(cells(page, "spreads") == Seq(Seq("0 name", "name", "1 ms / 2 ms / 3 ms", "1 ms / 2 ms / 3 ms", "-", micros,
      micros, micros, "1.0 B / 2.0 B / 3.0 B", "1.0 B / 2.0 B / 3.0 B", "1 / 2 / 3")))
    val rows = cells(page, "subtasks-table")
    assert(rows.map(_(2)) == Seq("3", "2", "1", "0"))
    assert(rows.head.patch(4, Nil, 1) == Seq("0 name", "name", "3", "exec-3", "3 ms", "1 ms", "0.700 ms", "1.500 ms",
      "2.500 ms", "4.500 ms", "256.0 B", "1024.0 B", "3", "19"))
    assert(rows.map(_(7)) == Seq("0.700 ms", "-", "0.700 ms", "-"))
    assert(page.text.contains("storage (2)"))
  }

  test("a report of a release without some phases has dashes for them") {
    val event = completed(1)
    val report = event.report.asInstanceOf[ObjectNode]
    report.path("operators").path(0).asInstanceOf[ObjectNode].remove("acknowledge_us")
    report.path("subtasks").elements().asScala.foreach { subtask =>
      (0 to 1).foreach(_ => subtask.asInstanceOf[ArrayNode].remove(12))
    }
    val page = new Tab(Seq(triggered(1), event)).render("checkpoint", "key" -> s"$Run-0")
    assert(cells(page, "spreads").head(7) == "-")
    assert(cells(page, "subtasks-table").forall(row => row(7) == "-" && row(10) == "-"))
  }

  test("a strip of the timeline has the phases of its subtask") {
    val tab = new Tab(Seq(triggered(1), completed(1)))
    val page = tab.render("timeline", "run" -> Run)
    val Seq(_, strip, _*) = (page \\ "figure").filter(node => (node \@ "id") == "subtasks-timeline") \\ "g"
    assert((strip \ "title").text == "partition 1: start delay 1 ms with restore 0.700 ms, snapshot 1.500 ms, write " +
      "2.500 ms, acknowledged after 1 ms, acknowledge 4.500 ms")
    val colours = (strip \ "rect").map(_ \@ "fill")
    assert(colours == Seq(Svg.Grey, Svg.Orange, Svg.Blue, Svg.Green))
  }

  test("a checkpoint without details says so") {
    val tab = new Tab(Seq(triggered(1)))
    assert(tab.render("checkpoint", "key" -> s"$Run-0").text.contains("follow at its end"))
  }

  test("200 subtasks have pages") {
    val tab = new Tab(Seq(triggered(1), completed(1, partitions = 200)))
    def page(parameters: (String, String)*): NodeSeq =
      tab.render("checkpoint", ("key" -> s"$Run-0") +: parameters: _*)
    val first = page()
    assert(cells(first, "subtasks-table").map(_(2)) == (100 to 199).reverse.map(_.toString))
    assert(cells(page("subtasks.page" -> "2"), "subtasks-table").map(_(2)) == (0 to 99).reverse.map(_.toString))
    val sorted = page("subtasks.sort" -> "Partition", "subtasks.pageSize" -> "3", "subtasks.page" -> "67")
    assert(cells(sorted, "subtasks-table").map(_(2)) == Seq("198", "199"))
    assert(links(first).exists(link => link.contains("subtasks.page=2") && link.contains(s"key=$Run-0")))
    assert(first.text.contains("Subtasks (200)"))
  }

  test("hostile names are text") {
    val tab = new Tab(Seq(started(name = Hostile), savepoint(Hostile), restored(name = Hostile),
      triggered(1, name = Hostile),
      completed(1, name = Hostile),
      triggered(2, name = Hostile), failed(2, name = Hostile, cause = Hostile)))
    val ofRun = Seq("query", "summary", "state", "timeline", "configuration").map(_ -> Seq("run" -> Run))
    (ofRun ++ Seq("" -> Nil, "timeline" -> Seq("run" -> Run, "key" -> s"$Run-0"),
      "checkpoint" -> Seq("key" -> s"$Run-0"),
      "checkpoint" -> Seq("key" -> s"$Run-1"))).foreach { case (page, parameters) =>
      assert(!tab.markup(page, parameters: _*).contains("<script>alert"))
      assert(tab.render(page, parameters: _*).text.contains(Hostile))
    }
  }

  test("a run id of any form is a parameter, not markup") {
    val run = """x" onclick="alert(1)&key=2"""
    val tab = new Tab(Seq(triggered(1, run), completed(1, run)))
    val page = tab.markup("query", "run" -> run)
    assert(!page.contains("""onclick="alert"""))
    assert(page.contains("run=x%22+onclick%3D%22alert%281%29%26key%3D2"))
  }

  test("invalid parameters get a message") {
    val tab = new Tab(Seq(triggered(1), completed(1)))
    assert(tab.render("query").text.contains("no checkpoints"))
    assert(tab.render("query", "run" -> "<b>").text.contains("no checkpoints"))
    assert(tab.render("checkpoint", "key" -> "x").text.contains("no such checkpoint"))
    Seq("history.sort" -> "<b>", "history.page" -> "x", "history.pageSize" -> "1x", "history.desc" -> "maybe").foreach {
      parameter =>
        assert(tab.render("query", "run" -> Run, parameter).text.contains("cannot be shown"), parameter)
        assert(!tab.markup("query", "run" -> Run, parameter).contains("<b>"))
    }
    Seq("history.page" -> "99", "history.pageSize" -> "0", "history.page" -> "-1").foreach { parameter =>
      assert(cells(tab.render("query", "run" -> Run, parameter), "history-table").size == 1, parameter)
    }
  }
}
