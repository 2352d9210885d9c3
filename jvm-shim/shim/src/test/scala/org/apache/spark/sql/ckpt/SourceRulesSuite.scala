// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt

import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.scalatest.funsuite.AnyFunSuite

/** Rules on the source text of everything below `jvm-shim`. */
class SourceRulesSuite extends AnyFunSuite {
  private val root = Iterator.iterate(Paths.get("").toAbsolutePath)(_.getParent).takeWhile(_ != null)
    .map(_.resolve("jvm-shim")).find(Files.isDirectory(_)).get

  /** Packages of what executors do. */
  private val executors = Seq("store", "compaction", "locate", "families", "files", "client")

  private def sources(of: Path, endings: String*): Seq[Path] = Using.resource(Files.walk(of)) { found =>
    found.iterator().asScala
      .filter(file => endings.exists(file.toString.endsWith) && !file.toString.contains("/target/"))
      .toSeq.sorted
  }

  private def imports(packageName: String): Seq[(Path, String)] =
    sources(root.resolve(s"shim/src/main/scala/org/apache/spark/sql/ckpt/$packageName"), ".scala").flatMap { file =>
      Files.readAllLines(file).asScala.filter(_.trim.startsWith("import ")).map(file -> _)
    }

  private def importsOf(packageName: String, others: String*): Seq[(Path, String)] =
    imports(packageName).filter { case (_, line) =>
      others.exists(other => s"sql\\.ckpt\\.(\\{.*)?\\b$other\\b".r.findFirstIn(line).isDefined)
    }

  test("executors know no part of the driver") {
    executors.foreach { name =>
      assert(imports(name).nonEmpty)
      assert(importsOf(name, "driver", "bridge").isEmpty)
    }
  }

  test("the wire knows neither end of it, nor the engine") {
    assert(importsOf("protocol", executors ++ Seq("driver", "bridge"): _*).isEmpty)
    assert(!imports("protocol").exists(_._2.contains("sparkckpt.engine")))
  }

  test("no request or reply is put together outside the package of the protocol") {
    val names = Seq("state_id", "base_state_id", "compaction", "compaction_failure", "outcome", "completed_version",
      "ack_threshold", "shared_file_\\w+", "stage_id")
    val fields = names.mkString("\"(", "|", ")\"").r
    val strays = (executors ++ Seq("driver", "bridge"))
      .flatMap(name => sources(root.resolve(s"shim/src/main/scala/org/apache/spark/sql/ckpt/$name"), ".scala"))
      .filter(file => fields.findFirstIn(Files.readString(file)).isDefined)
    assert(strays.isEmpty)
  }

  test("the bridge and the driver put together and take apart no header") {
    val json = "newHeader|ObjectNode|Message\\.mapper|\\.path\\(\"".r
    val strays = Seq("bridge", "driver")
      .flatMap(name => sources(root.resolve(s"shim/src/main/scala/org/apache/spark/sql/ckpt/$name"), ".scala"))
      .filter(file => json.findFirstIn(Files.readString(file)).isDefined)
    assert(strays.isEmpty)
  }

  test("threads are started in one place of each module, where their errors end") {
    val starts = Seq("new Thread\\b", "extends Thread\\b", "ThreadUtils\\b", "\\bExecutors\\.", "ThreadPoolExecutor",
      "ForkJoin", "new Timer\\b", "Cleaner\\.create", "ExecutionContext\\.\\w", "\\.par\\b", "\\.parallel\\(\\)",
      "CompletableFuture\\.\\w+Async", "addShutdownHook", "UncaughtExceptionHandler").mkString("|").r
    val all = Seq("engine", "shim").flatMap(module => sources(root.resolve(s"$module/src/main"), ".scala"))
    val starting = all.filter(file => starts.findFirstIn(Files.readString(file)).isDefined)
    assert(starting.map(_.getFileName.toString) == Seq("Cleanups.scala", "OwnThreads.scala"))
  }

  test("what threads of Spark call leaves its errors there, too") {
    val called = "extends (Spark|Streaming|StreamingQuery)Listener\\b|extends \\w*RpcEndpoint\\b".r
    val all = sources(root.resolve("shim/src/main"), ".scala").filter(file =>
      called.findFirstIn(Files.readString(file)).isDefined)
    assert(all.size >= 4)
    assert(all.filterNot(Files.readString(_).contains("OwnThreads.guard")).isEmpty)
  }

  test("no line is longer than 120 characters") {
    val long = sources(root, ".scala", ".java").flatMap { file =>
      Files.readAllLines(file).asScala.zipWithIndex
        .collect { case (line, i) if line.length > 120 => s"${root.relativize(file)}:${i + 1}" }
    }
    assert(long.isEmpty, long.mkString("\n", "\n", ""))
  }

  test("every source names its license") {
    val all = sources(root, ".scala", ".java", "pom.xml")
    assert(all.size > 100)
    val license = "SPDX-License-Identifier: Apache-2.0"
    assert(all.filterNot(Files.readString(_).take(300).contains(license)).isEmpty)
  }
}
