// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.protocol

import java.nio.{ByteBuffer, ByteOrder}

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.common.CheckpointFailure

class MessagesSuite extends AnyFunSuite {
  private val header = StoreHeader("job", SubtaskKey(1, "default", 3), version = 8, batchId = 7)
  private val task = TaskAttempt(5, 0, 3, 1, 77, "2")

  private def tree(json: String) = Message.mapper.readTree(json)

  private def bytes(numbers: Int*): Array[Byte] = numbers.map(_.toByte).toArray

  private def inline(firstVersion: Long, version: Long, data: Byte*) =
    SegmentRef(firstVersion, version, new Blocks(Array(2), Array(0L), data.toArray), data.length, flags = 2)

  /** Index of a segment: its key groups, and their offsets. */
  private def index(blocks: (Int, Long)*): Array[Byte] = {
    val buffer = ByteBuffer.allocate(12 * blocks.size).order(ByteOrder.LITTLE_ENDIAN)
    blocks.foreach { case (group, _) => buffer.putInt(group) }
    blocks.foreach { case (_, offset) => buffer.putLong(offset) }
    buffer.array()
  }

  private def malformed(message: Message)(read: Message => Any): String = {
    val failure = intercept[CheckpointFailure](read(message))
    assert(failure.error == "ProtocolError" && failure.reason.startsWith(s"malformed '${message.kind}' message: "))
    failure.reason
  }

  test("an ack has its fields in snake case, without the job and without what is None") {
    val file = SegmentRef(0, 6, new Blocks(Array(1, 4), Array(20L, 50L)), 60, Some("shared/base-1"), 100)
    val ack = Ack(header, "id", None, 10, 2, 1, task, inline(8, 8, 1, 2, 3), Some(ReadyBase(file, "of 6")), None,
      Seq(VersionSpan(7, 8)), None, AckTimings(4, 5, None)).toMessage
    assert(ack.kind == "ack" && ack.job == "job")
    assert(ack.json == tree("""{"subtask": [1, "default", 3], "version": 8, "batch_id": 7, "state_id": "id", "rows": 10,
      "rows_updated": 2, "rows_removed": 1, "task": [5, 0, 3, 1, 77, "2"],
      "delta": {"first_version": 8, "version": 8, "blocks": 1, "size": 3, "file_size": 0, "filters": [], "flags": 2},
      "base": {"segment": {"first_version": 0, "version": 6, "blocks": 2, "size": 60, "path": "shared/base-1",
        "file_size": 100, "filters": [], "flags": 0}, "state_id": "of 6"},
      "in_progress": [[7, 8]], "timings_us": {"snapshot": 4, "write": 5}}"""))
    assert(ack.index.toSeq == (index(2 -> 0L) ++ index(1 -> 20L, 4 -> 50L)).toSeq)
    assert(ack.payload.toSeq == Seq[Byte](1, 2, 3))
  }

  test("an ack with merged deltas has the bytes of both") {
    val ack = Ack(header, "id", Some("before"), 10, 2, 1, task, inline(8, 8, 1, 2), None,
      Some(ReadyMerge(inline(3, 6, 9), "digest")), Nil, Some("no space"), AckTimings(4, 5, Some(6))).toMessage
    assert(ack.payload.toSeq == Seq[Byte](1, 2, 9) && ack.index.length == 24)
    val json = ack.json
    assert(json.path("merged").path("digest").asText() == "digest" && json.path("base_state_id").asText() == "before")
    assert(json.path("compaction_failure").asText() == "no space")
    assert(json.path("timings_us").path("restore").asInt() == 6)
  }

  test("the driver reads what it needs of the requests of stores, and nothing else") {
    val ack = Ack(header, "id", None, 10, 2, 1, task, inline(8, 8, 1), None, None, Nil, None, AckTimings(4, 5, None))
    assert(StoreRequest.of(ack.toMessage) == StoreRequest(header.subtask, 8, 7, Some("id"), None, Some(task)))
    val locate = Locate(header, None, Some("mine")).toMessage
    assert(StoreRequest.of(locate) == StoreRequest(header.subtask, 8, 7, None, Some("mine")))
    assert(locate.job == "job" && locate.json.path("job").isMissingNode)
  }

  test("the trigger of a store without a query travels with its requests") {
    val trigger = Trigger("job", "location", "query", None, 7, 8, 1, "4.2.0",
      Seq(OperatorPlan(1, "standalone", Seq("default"), 1, None)), Nil, None, Map("a" -> "b"), Map.empty)
    val request = Locate(header.copy(standalone = Some(trigger)), None, None).toMessage
    val found = Trigger.within("job", StoreRequest.of(request)).get
    assert(found.kind == "trigger" && found.job == "job" && found.json == trigger.toMessage.json)
    assert(found.json == tree("""{"location": "location", "query_id": "query", "batch_id": 7, "version": 8,
      "checkpoint_format": 1, "spark_version": "4.2.0", "operators": [{"operator_id": 1, "name": "standalone",
      "stores": ["default"], "parallelism": 1}], "sources": [], "settings": {"a": "b"}, "hadoop": {},
      "report_details": false}"""))
  }

  test("a reply may lack what has a default, and have unknown fields") {
    val reply = AckReply.of(Message.reply("""{"outcome": "success", "news": [1]}"""))
    assert(reply == AckReply("success") && reply.counts && reply.isSuccess)
    val nulls = AckReply.of(Message.reply("""{"outcome": "denied", "state_id": null, "completed": null,
      "completed_version": null, "reason": null, "compaction": {"kind": "none"}}"""))
    assert(nulls == AckReply("denied") && !nulls.counts)
    val large = AckReply.of(
      Message.reply("""{"outcome": "success", "completed": 7, "completed_version": 4294967296}"""))
    assert(large.completed.map(_ + 1).contains(8L) && large.completedVersion.map(_ + 1).contains(4294967297L))
    assert(LocateReply.of(Message.reply("{}")).segments.isEmpty)
    def notified(json: String) = Notification.of(Message(Message.Notify, "job", json))
    val complete = notified("""{"event": "complete", "version": 3, "checkpoint_id": 1}""")
    assert(complete == Notification("complete", Some(3)) && complete.version.map(_ + 1).contains(4L))
    assert(notified("""{"event": "going_back", "version": null}""") == Notification("going_back"))
  }

  test("segments of a reply have their blocks, those in files and those in the payload") {
    val json = """{"state_id": "id", "key_group_factors": [2, 4], "operator": "agg", "state_format_version": 2,
      "rows": 5, "segments": [
        {"first_version": 0, "version": 3, "blocks": 2, "size": 60, "path": "shared/base-1", "file_size": 100,
         "filters": [[3, [0, 2]]], "flags": 2},
        {"first_version": 4, "version": 6, "blocks": 1, "size": 2, "path": null, "file_size": 0, "filters": []}],
      "compaction": {"kind": "merge", "digest": "d", "inputs": [
        {"first_version": 4, "version": 6, "blocks": 1, "size": 3}]},
      "limits": {"ack_threshold": 10, "shared_file_wait_ms": 20, "shared_file_bytes": 30},
      "restore": {"mode": "by_row", "budget": 500, "row_cost": 25, "key_group_cost": 3, "rest_after_ms": 1000}}"""
    val all = index(1 -> 20L, 4 -> 50L) ++ index(2 -> 0L) ++ index(5 -> 1L)
    val reply = LocateReply.of(Message.reply(json).copy(index = all, payload = bytes(7, 8, 9, 10, 11)))
    val Seq(base, delta) = reply.segments
    assert(base.isBase && base.keyGroups.toSeq == Seq(1, 4) && base.offsets.toSeq == Seq(20L, 50L))
    assert(base.file.contains(LocatedFile("shared/base-1", 100)) && base.data.isEmpty && base.flags == 2)
    assert(base.filters == Seq(PartitionFilter(3, Set(0, 2))) && base.filters.head.partitions.map(_ + 1) == Set(1, 3))
    assert(!delta.isBase && delta.covers == 3 && delta.file.isEmpty && delta.data.toSeq == Seq[Byte](7, 8))
    val merge = reply.compaction
    assert(merge.isMerge && !merge.isFull && (merge.firstVersion, merge.version, merge.digest) == ((4, 6, "d")))
    assert(merge.inputs.head.keyGroups.toSeq == Seq(5) && merge.inputs.head.data.toSeq == Seq[Byte](9, 10, 11))
    assert(reply.stateFormatVersion.map(_ + 1).contains(3) && reply.keyGroupFactors.toSeq == Seq(2, 4))
    assert(reply.limits.map(_.sharedFile).contains(SharedFileLimits(20, 30)) && !reply.current)
    assert(reply.restore == RestorePlan("by_row", 500, 25, 3, 1000) && reply.restore.isLazy)
  }

  test("the driver's own reply says that the store's state is current, and the limits") {
    val limits = ShippingLimits(10, 20, 30)
    for (known <- Seq(Some(limits), None)) {
      val reply = LocateReply.of(LocateReply.current(known))
      assert(reply.current && reply.limits == known)
    }
    assert(TriggerReply.of(Message.reply("""{"generation": 3, "max_parallelism": 4, "key_group_factors": [4], "limits":
      {"ack_threshold": 10, "shared_file_wait_ms": 20, "shared_file_bytes": 30}}""")).limits == limits)
  }

  test("the reply to a rescale has an id for each store of each partition") {
    val reply = RescaleReply.of(Message.reply("""{"before": 3, "state_ids": {"0": [["a", "b"], ["c", "d"]]}}"""))
    assert(reply == RescaleReply(3, Map("0" -> Seq(Seq("a", "b"), Seq("c", "d")))))
    assert(RescaleReply.of(Message.reply("""{"before": 3}""")) == RescaleReply(3))
  }

  test("malformed replies are one error") {
    val replies = Seq("", "null", "[1]", "{", """{"outcome": 1, "completed": "x"}""", """{"completed": 1}""",
      """{"outcome": null}""", """{"outcome": "success", "compaction": []}""", "\u0000",
      """{"outcome": "success", "compaction": {"kind": "merge", "inputs": [
        {"first_version": 1, "version": 1, "blocks": -1, "size": 1}]}}""")
    replies.foreach(json => malformed(Message.reply(json))(AckReply.of))
    malformed(Message.reply("""{"limits": {"ack_threshold": 1}}"""))(TriggerReply.of)
    malformed(Message.reply("{}"))(EndOffsetsReply.of)
    malformed(Message.reply("""{"before": 3, "state_ids": {"0": 1}}"""))(RescaleReply.of)
    malformed(Message(Message.Notify, "job", "{}"))(Notification.of)
    malformed(Message("ack", "job", """{"subtask": [1], "version": 1, "batch_id": 1}"""))(StoreRequest.of)
  }

  test("blocks that the index or the payload lacks are an error, before memory is taken for them") {
    def reply(segment: String) = Message.reply(s"""{"segments": [{"first_version": 0, "version": 1, $segment}]}""")
      .copy(index = index(1 -> 0L), payload = bytes(1, 2))
    assert(LocateReply.of(reply(""""blocks": 1, "size": 2""")).segments.head.data.length == 2)
    for (segment <- Seq("\"blocks\": 2, \"size\": 2", s"\"blocks\": ${Int.MaxValue}, \"size\": 2",
        "\"blocks\": 1, \"size\": 3", "\"blocks\": 1, \"size\": -1", s"\"blocks\": 1, \"size\": ${Long.MaxValue}")) {
      assert(malformed(reply(segment))(LocateReply.of).contains("less is in the index or the payload"), segment)
    }
  }

  test("an error is thrown, with the defaults of what it lacks") {
    val failure = intercept[CheckpointFailure](Message.error(new CheckpointFailure("Name", "a reason")).orThrow())
    assert(failure.error == "Name" && failure.reason == "a reason")
    val bare = intercept[CheckpointFailure](Message(Message.Error, "", "{}").orThrow())
    assert(bare.error == "Error" && bare.reason == "no reason was given")
    malformed(Message(Message.Error, "", "{"))(_.orThrow())
  }

  test("errors name the subject of a request") {
    val request = Locate(header, None, None).toMessage
    val where = "batch 7, version 8, operator 1, store default, partition 3"
    assert(RequestSubject.of(request) == RequestSubject("job", where))
    assert(RequestSubject.of(Close("job", "failed").toMessage) == RequestSubject("job", ""))
  }
}
