// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import java.io.{File, IOException}
import java.nio.file.{Files, Path}
import java.util.UUID

import io.github.sparkckpt.engine.pages.{LocalStateException, LocalTier, MemoryBudget}

import org.apache.spark.{SparkConf, SparkEnv}
import org.apache.spark.util.{ShutdownHookManager, Utils}

/** Files for state in Spark's local directories, which Spark cleans up after a crash too. */
private[ckpt] object LocalDisk {

  /** Local disk below the state of one store, beyond this memory for all stores of the JVM. */
  def tier(memoryBudget: Long): LocalTier =
    new LocalTier(memoryBudget, MemoryBudget.here, () => newFile(), () => StateMemory.evict())

  /** Path of a new file, in a random one of Spark's directories: each disk gets its share. */
  private def newFile(): Path = {
    val directory = directoryIn(Utils.getLocalDir(env.fold(new SparkConf)(_.conf)))
    if (!directory.exists()) {
      try Files.createDirectories(directory.toPath) catch {
        case e: IOException =>
          throw new LocalStateException(directory.getPath, s"the directory cannot be created: $e", e)
      }
      ShutdownHookManager.registerShutdownDeleteDir(directory)
    }
    directory.toPath.resolve(UUID.randomUUID().toString)
  }

  /** The directory of this JVM's files in one of Spark's. */
  private[ckpt] def directoryIn(parent: String): File =
    new File(parent, s"spark-ckpt-${env.fold("standalone")(_.executorId)}-$jvm")

  /** None before Spark starts and after it has stopped: then stores work as well. */
  private def env: Option[SparkEnv] = Option(SparkEnv.get)

  /** Tells JVMs that share a directory apart. */
  private val jvm = UUID.randomUUID().toString.take(8)
}
