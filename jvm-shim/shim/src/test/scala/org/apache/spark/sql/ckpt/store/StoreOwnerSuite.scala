// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import java.nio.file.Files

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import org.apache.hadoop.conf.Configuration
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.sql.ckpt.CheckpointStateStoreProvider
import org.apache.spark.sql.ckpt.client.CoordinatorClient
import org.apache.spark.sql.ckpt.locate.{QueryJob, ReaderJob, StandaloneJob, StoreJob}
import org.apache.spark.sql.ckpt.protocol.Message
import org.apache.spark.sql.execution.streaming.state.StateStoreId
import org.apache.spark.sql.internal.SQLConf

/** Ownership of a store, and its reports to the coordinator of batches and of the ids that Spark requests. */
class StoreOwnerSuite extends AnyFunSuite {
  private val coordinator = new CoordinatorClient(() => throw new IllegalStateException("no coordinator here"))

  private def withHarness(body: StoreHarness => Unit): Unit = {
    val harness = new StoreHarness
    try body(harness) finally harness.close()
  }

  private def lastMessage(h: StoreHarness, kind: String): Message =
    h.coordinator.heard.asScala.filter(_.kind == kind).last

  private def last(h: StoreHarness, kind: String): JsonNode = lastMessage(h, kind).json

  private def write(h: StoreHarness, provider: CheckpointStateStoreProvider, version: Long): Unit = {
    val store = provider.getStore(version)
    store.put(h.row(version), h.row(version))
    store.commit()
  }

  test("a task that says nothing of a query belongs to it all the same if the driver knows the run") {
    withHarness { h =>
      h.coordinator.isActive = true
      h.asTaskOfPlainThread()
      val provider = h.newProvider(partition = 1)
      assert(lastMessage(h, "query").job == h.job)
      (0 to 1).foreach { version =>
        write(h, provider, version)
        Seq("locate", "ack").foreach(kind => assert(lastMessage(h, kind).job == h.job, kind))
        Seq("locate", "ack").foreach(kind => assert(last(h, kind).path("batch_id").asLong(-1) == version, kind))
      }
      assert(h.heard("query") == 1)
      provider.close()
    }
  }

  test("a store of a run that is none of an active query is read from the checkpoints beside it, or stands alone") {
    withHarness { h =>
      h.asTaskOfPlainThread()
      val id = StateStoreId(h.location.resolve("state").toUri.toString, 0, 1)
      def job = StoreJob.of(id, h.job, Map.empty, new Configuration(), coordinator, 30.seconds)
      assert(job.isInstanceOf[StandaloneJob])
      Files.createDirectories(h.location.resolve("ckpt").resolve("chk-1"))
      assert(job.isInstanceOf[ReaderJob])
      h.coordinator.isActive = true
      assert(job.isInstanceOf[QueryJob])
    }
  }

  test("where the driver has no endpoint, no query of ours is active") {
    val context = new SparkContext(new SparkConf(false)
      .setMaster("local[1]")
      .setAppName("owner")
      .set("spark.ui.enabled", "false")
      .set("spark.driver.host", "127.0.0.1")
      .set("spark.driver.bindAddress", "127.0.0.1"))
    try assert(!coordinator.isActive("some-run", 30.seconds)) finally context.stop()
  }

  test("a task of a query does not ask the driver whose its store is") {
    withHarness { h =>
      h.commit(0, 1)
      assert(h.heard("query") == 0)
    }
  }

  test("the batch is that of the version, whatever batch the thread belongs to that started the job") {
    withHarness { h =>
      h.commit(0, 1)
      h.asTask(batch = 0) // as a thread of a pool has it that was started in the first batch
      h.commit(1, 2)
      Seq("locate", "ack").foreach(kind => assert(last(h, kind).path("batch_id").asLong(-1) == 1, kind))
    }
  }

  test("the id that Spark asks for goes to the coordinator if the checkpoint format has ids, and else does not") {
    withHarness { h =>
      Seq(1 -> null, 2 -> "asked").foreach { case (format, sent) =>
        val conf = h.storeConf(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION.key -> format.toString)
        val provider = h.newProvider(partition = format, conf = conf)
        write(h, provider, 0)
        provider.getStore(1, Some("asked")).abort()
        assert(last(h, "locate").path("state_id").asText(null) == sent)
        assert(last(h, "locate").hasNonNull("have"))
        provider.close()
      }
    }
  }
}
