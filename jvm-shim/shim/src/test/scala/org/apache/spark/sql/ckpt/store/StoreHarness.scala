// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.file.Files
import java.util.{Collections, Properties, UUID, WeakHashMap}
import java.util.concurrent.ConcurrentLinkedQueue

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import io.github.sparkckpt.engine.backend.HashMapStateBackend
import io.github.sparkckpt.engine.segment.{ArrayByteSource, RestoreFilter, StateSegment}
import org.apache.hadoop.conf.Configuration

import org.apache.spark.{SparkConf, SparkContext, SparkEnv, TaskContext, TaskContextImpl}
import org.apache.spark.executor.TaskMetrics
import org.apache.spark.rpc.{RpcCallContext, RpcEndpointRef, RpcEnv, ThreadSafeRpcEndpoint}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.ckpt.CheckpointStateStoreProvider
import org.apache.spark.sql.ckpt.common.Settings
import org.apache.spark.sql.ckpt.driver.RegisteredExecutors
import org.apache.spark.sql.ckpt.families.Operators
import org.apache.spark.sql.ckpt.protocol.{Coordinator, Message, Notification, RestorePlan}
import org.apache.spark.sql.execution.streaming.runtime.{MicroBatchExecution, StreamExecution}
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{LongType, StructField, StructType}
import org.apache.spark.util.Utils

/** In the place of the driver's endpoint: every ack counts unless told otherwise, and its delta can be loaded. */
private[ckpt] final class StubCoordinator(override val rpcEnv: RpcEnv) extends ThreadSafeRpcEndpoint {
  private case class State(id: String, index: Array[Byte], blocks: Int, bytes: Array[Byte], rows: Long)
  private val states = mutable.TreeMap.empty[Long, State]

  /** Fields of the answer to acks. */
  @volatile var answer: Map[String, String] = Map("outcome" -> "success")
  @volatile var baseDue = false

  /** Numbering of key groups. */
  @volatile var factors: Seq[Int] = Seq(1, 4)

  /** Plan of the replies to `locate` for state that there is. */
  @volatile var restore: RestorePlan = RestorePlan.AtOnce

  /** Error of the number of rows in replies to `locate`. */
  @volatile var rowsOff = 0L

  /** Changes a byte of a version's delta, counted from its end. */
  def damage(version: Long, fromEnd: Int): Unit = {
    val bytes = states(version).bytes
    bytes(bytes.length - fromEnd) = (bytes(bytes.length - fromEnd) ^ 8).toByte
  }

  /** True if the run that is asked for is that of an active query. */
  @volatile var isActive = false

  /** `baseDue` of the answers to `locate`. */
  @volatile var baseDueOnLoad = false

  /** Of the answers to both. */
  @volatile var baseRequired = false

  /** While it is set no ack is answered. Guarded by `held`, or an ack could be held after the last answer. */
  private var holding = false
  private val held = mutable.Queue.empty[() => Unit]

  def holdAcks(): Unit = held.synchronized { holding = true }

  def answerAcks(): Unit = held.synchronized {
    holding = false
    held.removeAll().foreach(_.apply())
  }

  /** Row filters of the segments in the replies to `locate`, as JSON. */
  @volatile var filters = "[]"
  val heard = new ConcurrentLinkedQueue[Message]()
  val executors = new RegisteredExecutors

  def kinds: Seq[String] = heard.asScala.toSeq.map(_.kind)

  override def receive: PartialFunction[Any, Unit] = {
    case (Coordinator.Register, executorId: String, executor: RpcEndpointRef) =>
      executors.add(executorId, executor)
      heard.add(Message(Coordinator.Register, "", "{}"))
    case (kind: String, job: String, header: String, _: Array[Byte], _: Array[Byte]) =>
      heard.add(Message(kind, job, header))
  }

  override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = {
    case (kind: String, job: String, header: String, index: Array[Byte], payload: Array[Byte]) =>
      val request = Message(kind, job, header, index, payload)
      def reply(): Unit = context.reply((kind match {
        case "ack" => acknowledge(request)
        case "query" => Message.reply(s"""{"active":$isActive}""")
        case _ => locate(request.json)
      }).toTuple)
      heard.add(request) // first: once the reply is out, a test may look
      held.synchronized {
        if (kind == "ack" && holding) held.enqueue(() => reply()) else reply()
      }
  }

  private def acknowledge(ack: Message): Message = {
    val header = ack.json
    val blocks = header.path("delta").path("blocks").asInt()
    val bytes = java.util.Arrays.copyOf(ack.payload, header.path("delta").path("size").asInt())
    if (answer("outcome") == "success") {
      states(header.path("version").asLong()) =
        State(header.path("state_id").asText(), ack.index.take(blocks * 12), blocks, bytes,
          header.path("rows").asLong())
    }
    val reply = Message.newHeader()
    putCompaction(reply, baseDue)
    answer.foreach { case (key, value) => reply.put(key, value) }
    Message.reply(reply.toString)
  }

  private def putCompaction(reply: ObjectNode, isDue: Boolean): Unit =
    reply.putObject("compaction")
      .put("kind", if (isDue || baseRequired) "full" else "none")
      .put("required", baseRequired)

  private def locate(request: JsonNode): Message = {
    val chain = states.rangeTo(request.path("version").asLong()).toSeq.filter(_._2.blocks > 0)
    val header = Message.newHeader()
      .put("state_id", states.get(request.path("version").asLong()).map(_.id).orNull)
      .put("operator", Operators.Aggregation)
      .put("rows", states.get(request.path("version").asLong()).fold(0L)(_.rows) + rowsOff)
    putCompaction(header, baseDueOnLoad)
    val plan = if (chain.isEmpty) RestorePlan.AtOnce else restore
    header.putObject("restore")
      .put("mode", plan.mode)
      .put("budget", plan.budget)
      .put("row_cost", plan.rowCost)
      .put("key_group_cost", plan.keyGroupCost)
      .put("rest_after_ms", plan.restAfterMs)
    val numbering = header.putArray("key_group_factors")
    factors.foreach(numbering.add(_))
    val segments = header.putArray("segments")
    chain.foreach { case (version, state) =>
      segments.addObject()
        .put("first_version", version)
        .put("version", version)
        .put("blocks", state.blocks)
        .put("size", state.bytes.length)
        .putNull("path")
        .set[JsonNode]("filters", Message.mapper.readTree(filters))
    }
    Message.reply(header.toString)
      .copy(index = Array.concat(chain.map(_._2.index): _*), payload = Array.concat(chain.map(_._2.bytes): _*))
  }
}

/** One store as a task of a query uses it, in a Spark of its own, with a [[StubCoordinator]]. */
private[ckpt] final class StoreHarness(settings: (String, String)*) extends AutoCloseable {
  private val context = new SparkContext(new SparkConf(false).setMaster("local[1]").setAppName("store")
    .set("spark.ui.enabled", "false")
    .set("spark.driver.host", "127.0.0.1")
    .set("spark.driver.bindAddress", "127.0.0.1"))
  val coordinator = new StubCoordinator(SparkEnv.get.rpcEnv)
  val job: String = UUID.randomUUID().toString
  private val schema = StructType(Seq(StructField("n", LongType)))
  private val toRow = UnsafeProjection.create(schema)
  val location: java.nio.file.Path = Utils.createTempDir(namePrefix = "store-harness").toPath
  SparkEnv.get.rpcEnv.setupEndpoint(Coordinator.Endpoint, coordinator)
  asTask(batch = 0)

  // Weak: suites look for what holds a store.
  private val providers =
    Collections.newSetFromMap(new WeakHashMap[CheckpointStateStoreProvider, java.lang.Boolean]())
  val provider: CheckpointStateStoreProvider = newProvider()

  /** One more store of the query, or the same one on another executor. */
  def newProvider(
      partition: Int = 0,
      useColumnFamilies: Boolean = false,
      conf: StateStoreConf = storeConf(),
      schemas: Option[StateSchemaProvider] = None,
      keySchema: StructType = schema,
      valueSchema: StructType = schema): CheckpointStateStoreProvider = {
    val provider = new CheckpointStateStoreProvider
    provider.init(StateStoreId(location.resolve("state").toUri.toString, 0, partition), keySchema, valueSchema,
      NoPrefixKeyStateEncoderSpec(keySchema), useColumnFamilies, conf, hadoopConf, stateSchemaProvider = schemas)
    providers.add(provider)
    provider
  }

  def storeConf(more: (String, String)*): StateStoreConf = {
    val conf = new SQLConf
    more.foreach { case (key, value) => conf.setConfString(key, value) }
    conf.setConfString("spark.sql.streaming.stateStore.commitValidation.enabled", "false")
    settings.foreach { case (key, value) => conf.setConfString(Settings.Prefix + key, value) }
    new StateStoreConf(conf)
  }

  private def hadoopConf: Configuration = {
    val conf = new Configuration()
    conf.set(StreamExecution.RUN_ID_KEY, job)
    conf
  }

  /** Makes this thread a task of a batch. */
  def asTask(batch: Long, stage: Int = 7, taskAttemptId: Long = 1): TaskContextImpl = {
    val properties = new Properties
    properties.setProperty(MicroBatchExecution.BATCH_ID_KEY, batch.toString)
    properties.setProperty(StreamExecution.QUERY_ID_KEY, UUID.randomUUID().toString)
    asTaskWith(properties, stage, taskAttemptId)
  }

  /** Makes this thread a task of a job that was started from a thread without Spark's local properties. */
  def asTaskOfPlainThread(): TaskContextImpl = asTaskWith(new Properties, stage = 7, taskAttemptId = 1)

  private def asTaskWith(properties: Properties, stage: Int, taskAttemptId: Long): TaskContextImpl = {
    val task = new TaskContextImpl(stage, 0, 0, taskAttemptId, 2, 1, null, properties, null, TaskMetrics.empty, 1)
    TaskContext.setTaskContext(task)
    task
  }

  def row(n: Long): UnsafeRow = toRow(InternalRow(n)).copy()

  def open(version: Long): CheckpointStateStore = provider.getStore(version)

  /** One batch that puts these numbers under their own keys; its store. */
  def commit(version: Long, numbers: Long*): CheckpointStateStore = {
    val store = open(version)
    numbers.foreach(n => store.put(row(n), row(n)))
    store.commit()
    store
  }

  /** The numbers in a version. */
  def read(version: Long): Set[Long] =
    provider.getReadStore(version).iterator().map(_.key.getLong(0)).toSet

  /** True if a version is in memory when it is asked for; if not it is loaded. */
  def holds(version: Long): Boolean = {
    read(version)
    coordinator.heard.asScala.filter(_.kind == "locate").last.json.path("have").asText("").nonEmpty
  }

  def notify(event: String, version: Long): Unit =
    provider.subtask.notified(Notification(event, Some(version).filter(_ >= 0)))

  /** Number of rows in the base of the last ack. */
  def rowsOfLastBase: Long = {
    val ack = coordinator.heard.asScala.filter(_.kind == "ack").last
    val (delta, base) = (ack.json.path("delta"), ack.json.path("base").path("segment"))
    val blocks = base.path("blocks").asInt()
    val index = ByteBuffer.wrap(ack.index).order(ByteOrder.LITTLE_ENDIAN)
    index.position(delta.path("blocks").asInt() * 12 + blocks * 4)
    val offsets = Array.fill(blocks)(index.getLong())
    val bytes =
      if (base.has("path")) Files.readAllBytes(location.resolve("ckpt").resolve(base.path("path").asText()))
      else ack.payload.takeRight(base.path("size").asInt())
    val backend = new HashMapStateBackend(1 << 15)
    backend.restore(base.path("version").asLong(), 0,
      Seq(StateSegment(isBase = true, new ArrayByteSource("base", bytes), offsets)),
      RestoreFilter.range(0, backend.maxParallelism - 1))
    backend.rowCount
  }

  /** The names of the state files. */
  def files: Seq[String] = {
    val directory = location.resolve("ckpt").resolve("shared")
    if (Files.exists(directory)) directory.toFile.list().toSeq else Nil
  }

  /** Number of messages of a kind. */
  def heard(kind: String): Int = coordinator.kinds.count(_ == kind)

  /** True if the provider holds state in memory. */
  def inMemory: Boolean = provider.subtask.metrics(None, forced = false).memoryUsedBytes > 0

  /** Metrics of a store by name. */
  def metrics(store: StateStore): Map[String, Long] = store.metrics.customMetrics.map { case (m, v) => m.name -> v }

  /** Releases all state: other suites look at the same heap and the same directory on the local disk. */
  override def close(): Unit = {
    providers.asScala.toSeq.foreach(_.subtask.notified(Notification(Notification.Ended)))
    provider.close()
    TaskContext.unset()
    context.stop()
  }
}

private[ckpt] object StoreHarness {

  /** Plan for so many rows in 64 key groups, which looks them up. */
  def byRow(rows: Long): RestorePlan = RestorePlan(
    RestorePlan.ByRow, budget = rows / 8, rowCost = 25, keyGroupCost = rows / 64 / 32, restAfterMs = 1000)

  /** Runs something with a harness and a provider that has column families. */
  def withFamilies(settings: (String, String)*)(body: (StoreHarness, CheckpointStateStoreProvider) => Unit): Unit = {
    val harness = new StoreHarness(settings: _*)
    try {
      val provider = harness.newProvider(useColumnFamilies = true)
      try body(harness, provider) finally provider.close()
    } finally harness.close()
  }
}
