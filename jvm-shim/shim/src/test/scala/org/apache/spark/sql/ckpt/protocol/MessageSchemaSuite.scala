// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.protocol

import java.nio.file.{Files, Paths}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, PropertyNamingStrategies}
import org.scalatest.funsuite.AnyFunSuite

/** The messages of the JVM beside the schema that is derived from the types in Python. */
class MessageSchemaSuite extends AnyFunSuite {
  private lazy val schema: JsonNode = {
    val folders = Iterator.iterate(Paths.get("").toAbsolutePath)(_.getParent).takeWhile(_ != null)
    val file = folders.map(_.resolve("docs/messages.json")).find(Files.exists(_))
    Message.mapper.readTree(Files.readString(file.getOrElse(fail("make docs writes docs/messages.json"))))
  }

  private def definition(name: String): JsonNode = {
    val found = schema.path("$defs").path(name)
    assert(found.isObject, name)
    found
  }

  /** What only the driver reads. */
  private val ofDriver = Set("batch_id", "have", "standalone")

  /** Deviations of a value from the schema, with their places. */
  private def deviations(value: JsonNode, described: JsonNode, place: String): Seq[String] = {
    def refused = Seq(s"$place: $value is no $described")
    if (described.has("$ref")) {
      deviations(value, definition(described.path("$ref").asText().split('/').last), place)
    } else if (described.has("anyOf")) {
      val all = described.path("anyOf").elements().asScala.map(deviations(value, _, place)).toSeq
      if (all.exists(_.isEmpty)) Nil else all.last
    } else if (described.has("enum")) {
      if (described.path("enum").elements().asScala.contains(value)) Nil else refused
    } else {
      described.path("type").asText() match {
        case "object" if value.isObject => ofObject(value, described, place)
        case "array" if value.isArray && described.has("prefixItems") =>
          val items = described.path("prefixItems").elements().asScala.toSeq
          val values = value.elements().asScala.toSeq
          if (items.size != values.size) refused
          else values.zip(items).flatMap { case (one, item) =>
            deviations(one, item, s"$place.${item.path("title").asText()}")
          }
        case "array" if value.isArray =>
          value.elements().asScala.toSeq.flatMap(deviations(_, described.path("items"), s"$place[]"))
        case "integer" if value.isIntegralNumber && value.asLong() >= described.path("minimum").asLong(Long.MinValue) =>
          Nil
        case "string" if value.isTextual => Nil
        case "boolean" if value.isBoolean => Nil
        case "null" if value.isNull => Nil
        case _ => refused
      }
    }
  }

  private def ofObject(value: JsonNode, described: JsonNode, place: String): Seq[String] = {
    val known = described.path("properties")
    val absent = described.path("required").elements().asScala.map(_.asText()).filterNot(value.has)
    absent.map(name => s"$place has no $name").toSeq ++ value.properties().asScala.toSeq.flatMap { entry =>
      val (name, field) = (entry.getKey, entry.getValue)
      if (known.has(name)) deviations(field, known.path(name), s"$place.$name")
      else if (described.path("additionalProperties").isObject) {
        deviations(field, described.path("additionalProperties"), s"$place.$name")
      } else if (ofDriver(name)) Nil
      else Seq(s"$place has $name, which Python does not read")
    }
  }

  private val header = StoreHeader("job", SubtaskKey(1, "default", 3), version = 8, batchId = 7)
  private val task = TaskAttempt(-1, 0, 3, 1, 77, "2")
  private val operator = OperatorPlan(1, "agg", Seq("default"), 4, Some(2))
  private val inline = SegmentRef(8, 8, new Blocks(Array(2), Array(0L), Array[Byte](1)), 1, flags = 2)
  private val inFile =
    SegmentRef(0, 6, new Blocks(Array(1), Array(20L)), 60, Some("x"), 100, Seq(PartitionFilter(3, Set(1))))

  private val meaning = QueryMeaning(
    Seq(SourceMeaning("kafka subscribe=t", 0), SourceMeaning("rate", 1, Some("ticks"))),
    Seq(OperatorMeaning(1, "agg", Some("INNER join"), Seq(KeyMeaning("k", "0.k", "k")),
      Seq(KeyMeaning("k", "1.k", "k")), Seq("a", "b"),
      Seq(FunctionMeaning("sum(0.v)", "sum(v)", Seq("sum"), Some(Seq(None, Some("0"))), Seq("sum"))))),
    Seq("0.ts 1 hours"))

  private val trigger = Trigger("job", "location", "query", Some("name"), 7, 8, 2, "4.2.0", Seq(operator),
    Seq(SourceOffset("0", Some("{}")), SourceOffset("1", None)), Some("v1"), Map("a" -> "b"), Map("c" -> "d"),
    Some(5L), Some(3L), reportDetails = true, meaning = Some(meaning))

  private val ack = Ack(header, "id", Some("before"), 10, 2, 1, task, inline, Some(ReadyBase(inFile, "of 6")),
    Some(ReadyMerge(inFile.copy(firstVersion = 3), "digest")), Seq(VersionSpan(3, 4)), Some("no space"),
    AckTimings(1, 2, Some(3)))

  private val requests = Seq(
    Start(5, "4.2.0", 4242, 1).toMessage,
    Check(Map("a" -> "b")).toMessage,
    trigger.toMessage,
    trigger.copy(queryName = None, offsetLog = None, realTimeMs = None, logEpoch = None, meaning = None).toMessage,
    Locate(header, Some("id"), Some("mine")).toMessage,
    Locate(header.copy(standalone = Some(trigger)), None, None).toMessage,
    ack.toMessage,
    ack.copy(baseStateId = None, base = None, merged = None, compactionFailure = None).toMessage,
    EndOffsets("job", 7, 8, "v1").toMessage,
    Rescale("job", 8, 16).toMessage,
    Decline(header, task, "a reason").toMessage,
    Unreadable(header, "a reason").toMessage,
    TaskFailed("job", 1, 0, 3, 1, "a reason").toMessage,
    Close("job", "failed").toMessage)

  test("each request has the fields of the schema") {
    assert(requests.map(_.kind).toSet == schema.path("requests").fieldNames().asScala.toSet)
    for (request <- requests) {
      val described = schema.path("requests").path(request.kind).path("request")
      assert(deviations(request.json, described, request.kind).isEmpty)
    }
  }

  private def fields(of: Class[_]): Seq[String] = of.getDeclaredFields.toSeq
    .filterNot(field => java.lang.reflect.Modifier.isStatic(field.getModifiers))
    .map(field => PropertyNamingStrategies.SnakeCaseStrategy.INSTANCE.translate(field.getName))

  test("what is read of replies and notifications is in the schema") {
    val types = Seq(classOf[TriggerReply] -> "TriggerReply", classOf[ShippingLimits] -> "ShippingLimits",
      classOf[LocateReply] -> "LocateReply", classOf[SegmentRef] -> "SegmentRef",
      classOf[CompactionRequest] -> "CompactionRequest", classOf[RestorePlan] -> "RestorePlan",
      classOf[AckReply] -> "AckReply",
      classOf[EndOffsetsReply] -> "EndOffsetsReply", classOf[RescaleReply] -> "RescaleReply",
      classOf[Notification] -> "Notification",
      classOf[ErrorReply] -> "ErrorReply")
    for ((type_, name) <- types) {
      val unknown = fields(type_).filterNot(definition(name).path("properties").has)
      assert(unknown.filterNot(field => name == "LocateReply" && field == "current").isEmpty, name)
    }
  }

  test("arrays have the order of the schema") {
    val types = Seq(classOf[SubtaskKey] -> "SubtaskKey", classOf[TaskAttempt] -> "Task",
      classOf[VersionSpan] -> "InProgress", classOf[PartitionFilter] -> "PartitionFilter")
    for ((type_, name) <- types) {
      val titles = definition(name).path("prefixItems").elements().asScala.map(_.path("title").asText()).toSeq
      assert(fields(type_) == titles, name)
    }
  }

  test("names of outcomes, events and kinds are those of the schema") {
    def values(name: String) = definition(name).path("enum").elements().asScala.map(_.asText()).toSet
    assert(values("Outcome") == Set(AckReply.Success, AckReply.Duplicate, AckReply.Denied, AckReply.Unknown,
      AckReply.Discarded))
    assert(Set(Notification.Complete, Notification.Aborted, Notification.GoingBack).subsetOf(values("Event")))
    val requests = Seq(CompactionRequest.Nothing, CompactionRequest.Base, CompactionRequest.merge(Seq(inline), ""))
    assert(values("Kind") == requests.map(_.kind).toSet)
    val modes = definition("RestorePlan").path("properties").path("mode").path("enum").elements().asScala
    assert(modes.map(_.asText()).toSet == Set(RestorePlan.BySegment, RestorePlan.ByKeyGroup, RestorePlan.ByRow))
  }
}
