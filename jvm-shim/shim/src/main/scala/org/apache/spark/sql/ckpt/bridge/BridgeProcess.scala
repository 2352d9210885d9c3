// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.bridge

import java.io.{BufferedOutputStream, BufferedReader, IOException, InputStreamReader}
import java.nio.channels.Channels
import java.nio.charset.StandardCharsets.UTF_8
import java.util
import java.util.concurrent.{LinkedBlockingQueue, TimeUnit}

import scala.jdk.CollectionConverters._

import org.apache.arrow.vector.{BigIntVector, VarBinaryVector, VarCharVector, VectorSchemaRoot}
import org.apache.arrow.vector.ipc.{ArrowStreamReader, ArrowStreamWriter}
import org.apache.arrow.vector.types.pojo.{ArrowType, Field, FieldType, Schema}

import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.common.{BridgeFailure, OwnThreads, Redaction}
import org.apache.spark.sql.ckpt.protocol.Message
import org.apache.spark.sql.util.ArrowUtils
import org.apache.spark.util.Utils

/** A message and the number of its request. */
private[bridge] final case class Numbered(id: Long, message: Message)

/**
 * One life of the Python side process: its pipes and the three threads that serve them. It does not interpret messages
 * and does not restart; [[PythonBridge]] starts a successor.
 *
 * @param command   the command line
 * @param silence   takes its signs of life
 * @param onMessage called on the reader thread for each reply, notification and request; must not block
 * @param onEnd     called once, on the reader thread, after the process has closed its output
 */
private[bridge] final class BridgeProcess(
    command: Seq[String],
    val silence: Silence,
    onMessage: (BridgeProcess, Numbered) => Unit,
    onEnd: BridgeProcess => Unit)
    extends Logging {

  import BridgeProcess._

  private val outbound = new LinkedBlockingQueue[Numbered]()
  private val lastLines = new util.ArrayDeque[String]()
  @volatile private var isClosing = false
  @volatile private var hasOtherColumns = false

  private val process: Process =
    try new ProcessBuilder(command.asJava).start()
    catch {
      case e: IOException =>
        throw new BridgeFailure(
          s"cannot start Python '${command.head}' (${e.getMessage}): set " +
            "spark.sql.streaming.stateStore.ckpt.python to a Python that has spark-ckpt installed", e)
    }

  private val reader = daemon("reader")(readMessages())
  private val writer = daemon("writer")(writeMessages())
  private val logReader = daemon("log")(readLog())
  Seq(reader, writer, logReader).foreach(_.start())

  def pid: Long = process.pid()

  /** Queues a message; all waiting messages are written together. */
  def send(numbered: Numbered): Unit = outbound.put(numbered)

  /** Closes the process's input, which ends it; kills it after a few seconds. */
  def close(): Unit = {
    isClosing = true
    outbound.put(Stop)
    if (!process.waitFor(5, TimeUnit.SECONDS)) {
      process.destroyForcibly()
    }
  }

  /** Ends a process that hangs. */
  def kill(): Unit = {
    isClosing = true
    process.destroyForcibly()
    writer.interrupt()
  }

  /** Last lines of the process's log, for an error message. */
  def lastWords: String = {
    // The pipe may still hold lines written just before the end.
    logReader.join(1000)
    lastLines.synchronized(lastLines.asScala.mkString("\n"))
  }

  /** True if its stream is of another version of the protocol. */
  def isOfOtherVersion: Boolean = hasOtherColumns

  def exitCode: Option[Int] =
    if (process.waitFor(2, TimeUnit.SECONDS)) Some(process.exitValue()) else None

  private def daemon(role: String)(body: => Unit): Thread = OwnThreads.daemon(s"spark-ckpt-bridge-$role")(body)

  /** Closes the process's input at the end, whatever it is: the process then ends, and a successor takes over. */
  private def writeMessages(): Unit =
    try closing(process.getOutputStream.close()) {
      val allocator = ArrowUtils.rootAllocator.newChildAllocator("spark-ckpt-bridge-writer", 0, Long.MaxValue)
      closing(allocator.close()) {
        val root = VectorSchemaRoot.create(MessageSchema, allocator)
        closing(root.close())(writeMessages(root))
      }
    } catch {
      case e: IOException => logDebug("the side process closed its input", e)
      case _: InterruptedException => Thread.currentThread().interrupt()
    }

  private def writeMessages(root: VectorSchemaRoot): Unit = {
    val out = new BufferedOutputStream(process.getOutputStream, 1 << 16)
    val stream = new ArrowStreamWriter(root, null, Channels.newChannel(out))
    stream.start()
    out.flush()
    val batch = new util.ArrayList[Numbered]()
    var open = true
    while (open) {
      batch.clear()
      batch.add(outbound.take())
      drainUpTo(batch, MaxBatchBytes)
      open = !batch.contains(Stop)
      batch.remove(Stop)
      if (!batch.isEmpty) {
        fill(root, batch)
        stream.writeBatch()
        out.flush()
      }
    }
    stream.end()
    out.flush()
  }

  private def drainUpTo(batch: util.ArrayList[Numbered], maxBytes: Long): Unit = {
    var bytes = size(batch.get(0))
    var next = outbound.peek()
    while (next != null && bytes + size(next) <= maxBytes) {
      batch.add(outbound.poll())
      bytes += size(next)
      next = outbound.peek()
    }
  }

  private def readMessages(): Unit = closing(onEnd(this))(closing(writer.interrupt()) {
    var isAtEnd = false
    // No more of its output is read, so it must not live on beside a successor. `Process.destroy` closes the streams,
    // with last words unread; the handle's method does not.
    closing(if (!isAtEnd) process.toHandle.destroy()) {
      try {
        readToEnd()
        isAtEnd = true
      } catch {
        // A dying process closes its pipe at any point; onEnd handles it.
        case e: Exception => if (!isClosing) logDebug("the side process closed its output", e)
      }
    }
  })

  private def readToEnd(): Unit = {
    val allocator = ArrowUtils.rootAllocator.newChildAllocator("spark-ckpt-bridge-reader", 0, Long.MaxValue)
    closing(allocator.close()) {
      val stream = new ArrowStreamReader(process.getInputStream, allocator)
      closing(stream.close(false)) {
        val root = stream.getVectorSchemaRoot
        if (namesOf(root.getSchema) != namesOf(MessageSchema)) {
          hasOtherColumns = true
          throw new IOException(s"the stream has the columns ${namesOf(root.getSchema)}")
        }
        while (stream.loadNextBatch()) {
          silence.heard()
          rows(root).foreach(onMessage(this, _))
        }
      }
    }
  }

  private def readLog(): Unit = {
    val lines = new BoundedLines(new BufferedReader(new InputStreamReader(process.getErrorStream, UTF_8)), MaxLine)
    try {
      var line = lines.next()
      while (line != null) {
        // A process whose output is not read waits for its reader.
        OwnThreads.guard("a line of the side process's log")(show(line))
        line = lines.next()
      }
    } catch {
      case e: IOException => logDebug("the side process closed its log", e)
    }
  }

  /** The process redacts its own log; the last words of an aborting library arrive unredacted. */
  private def show(unredacted: String): Unit = {
    val line = Redaction.redacted(unredacted)
    lastLines.synchronized {
      lastLines.addLast(line)
      if (lastLines.size > KeptLogLines) lastLines.removeFirst()
    }
    levelOf(line) match {
      case "CRITICAL" | "ERROR" => logError(line)
      case "WARNING" => logWarning(line)
      case "DEBUG" => logDebug(line)
      case _ => logInfo(line)
    }
  }
}

private[bridge] object BridgeProcess {
  private val JsonLevel = "{\"level\": \""

  /** Level of Python's logging with which a line of the process's log begins, in either format. */
  def levelOf(line: String): String =
    if (line.startsWith(JsonLevel)) line.substring(JsonLevel.length).takeWhile(_ != '"') else line.takeWhile(_ != ' ')

  private val KeptLogLines = 40

  /** The process cuts its own lines to a quarter of this (`MAX_LINE` in `spark_ckpt/bridge/log.py`). */
  private val MaxLine = 64 << 10
  private val MaxBatchBytes = 64L << 20
  private val Stop = Numbered(Long.MinValue, Message("stop", "", "{}"))

  /** Runs an action, and then another, whatever the first one throws. */
  private def closing[A](last: => Unit)(action: => A): A = Utils.tryWithSafeFinally(action)(last)

  private def field(name: String, kind: ArrowType) = new Field(name, FieldType.notNullable(kind), null)

  /** Columns of docs/protocol.md, section 1.1. */
  val MessageSchema: Schema = new Schema(util.List.of(
    field("id", new ArrowType.Int(64, true)),
    field("kind", ArrowType.Utf8.INSTANCE),
    field("job", ArrowType.Utf8.INSTANCE),
    field("header", ArrowType.Utf8.INSTANCE),
    field("index", ArrowType.Binary.INSTANCE),
    field("payload", ArrowType.Binary.INSTANCE)))

  private def namesOf(schema: Schema): Seq[String] = schema.getFields.asScala.toSeq.map(_.getName)

  private def size(n: Numbered): Long =
    n.message.header.length.toLong + n.message.index.length + n.message.payload.length

  private def fill(root: VectorSchemaRoot, batch: util.List[Numbered]): Unit = {
    root.clear()
    root.allocateNew()
    val id = root.getVector("id").asInstanceOf[BigIntVector]
    val kind = root.getVector("kind").asInstanceOf[VarCharVector]
    val job = root.getVector("job").asInstanceOf[VarCharVector]
    val header = root.getVector("header").asInstanceOf[VarCharVector]
    val index = root.getVector("index").asInstanceOf[VarBinaryVector]
    val payload = root.getVector("payload").asInstanceOf[VarBinaryVector]
    var i = 0
    while (i < batch.size) {
      val n = batch.get(i)
      id.setSafe(i, n.id)
      kind.setSafe(i, n.message.kind.getBytes(UTF_8))
      job.setSafe(i, n.message.job.getBytes(UTF_8))
      header.setSafe(i, n.message.header.getBytes(UTF_8))
      index.setSafe(i, n.message.index)
      payload.setSafe(i, n.message.payload)
      i += 1
    }
    root.setRowCount(batch.size)
  }

  private def rows(root: VectorSchemaRoot): Seq[Numbered] = {
    val id = root.getVector("id").asInstanceOf[BigIntVector]
    val kind = root.getVector("kind").asInstanceOf[VarCharVector]
    val job = root.getVector("job").asInstanceOf[VarCharVector]
    val header = root.getVector("header").asInstanceOf[VarCharVector]
    val index = root.getVector("index").asInstanceOf[VarBinaryVector]
    val payload = root.getVector("payload").asInstanceOf[VarBinaryVector]
    (0 until root.getRowCount).map { i =>
      Numbered(id.get(i), Message(new String(kind.get(i), UTF_8), new String(job.get(i), UTF_8),
        new String(header.get(i), UTF_8), index.get(i), payload.get(i)))
    }
  }
}
