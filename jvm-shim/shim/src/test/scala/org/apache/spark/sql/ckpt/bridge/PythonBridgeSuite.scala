// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.bridge

import java.nio.channels.Channels
import java.nio.file.{Files, Path}
import java.util

import scala.concurrent.Await
import scala.concurrent.duration._
import scala.jdk.CollectionConverters._

import org.apache.arrow.vector.VectorSchemaRoot
import org.apache.arrow.vector.ipc.ArrowStreamWriter
import org.apache.arrow.vector.types.pojo.Schema
import org.apache.hadoop.conf.Configuration
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.ckpt.protocol.Query
import org.apache.spark.sql.util.ArrowUtils
import org.apache.spark.util.Utils

class PythonBridgeSuite extends AnyFunSuite {
  private val directory = Utils.createTempDir(namePrefix = "python-bridge").toPath

  /** The failure of a request, if the side process is this shell script. */
  private def failureOf(script: String): String = {
    val python = Files.writeString(directory.resolve("python"), s"#!/bin/sh\n$script\n")
    python.toFile.setExecutable(true)
    val bridge = new PythonBridge(python.toString, "4.2.0", new HadoopFiles(_ => new Configuration()), 1.hour, _ => ())
    try intercept[CheckpointFailure](Await.result(bridge.send(Query("job").toMessage), 5.minutes)).getMessage
    finally bridge.close()
  }

  /** A stream without messages, with the columns of the protocol's versions 1 to 4. */
  private def earlierStream(): Path = {
    val path = directory.resolve("earlier")
    val fields = BridgeProcess.MessageSchema.getFields.asScala.filter(_.getName != "job")
    val allocator = ArrowUtils.rootAllocator.newChildAllocator("earlier", 0, Long.MaxValue)
    val root = VectorSchemaRoot.create(new Schema(new util.ArrayList(fields.asJava)), allocator)
    val out = Files.newOutputStream(path)
    try new ArrowStreamWriter(root, null, Channels.newChannel(out)).start()
    finally {
      out.close()
      root.close()
      allocator.close()
    }
    path
  }

  test("a package of an earlier release, which refuses the columns of the stream, is told to be another one") {
    val failure = failureOf("echo \"ERROR spark_ckpt.bridge: the stream has the columns ['id', 'kind'] instead of " +
      "those in docs/protocol.md\" >&2; exit 2")
    assert(failure.startsWith("[ProtocolError]") && failure.contains("install both from the same release"))
    assert(failure.contains("the columns ['id', 'kind']"))
  }

  test("a package that answers with columns of an earlier release is told to be another one") {
    val failure = failureOf(s"cat ${earlierStream()}; exec sleep 3600")
    assert(failure.startsWith("[ProtocolError]") && failure.contains("version 5 of the protocol"))
    assert(failure.contains("install both from the same release"))
  }

  test("a process that ends before it has started fails the request after several tries") {
    val failure = failureOf("echo no luck >&2; exit 3")
    assert(failure.contains("ended 6 times in a row") && failure.contains("exit code 3") && failure.contains("no luck"))
  }
}
