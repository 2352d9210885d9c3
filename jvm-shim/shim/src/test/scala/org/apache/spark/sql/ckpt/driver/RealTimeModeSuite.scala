// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import org.apache.hadoop.conf.Configuration
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.CheckpointLogFileManager
import org.apache.spark.sql.ckpt.common.{CheckpointFailure, Settings}
import org.apache.spark.sql.ckpt.compat.RealTimeStarts

class RealTimeModeSuite extends AnyFunSuite {
  private val managerKey = "spark.sql.streaming.checkpointFileManagerClass"
  private val permitted = Map(Settings.RealTimeMode -> " Experimental ")

  private def conf(manager: String): Configuration = {
    val conf = new Configuration(false)
    if (manager.nonEmpty) conf.set(managerKey, manager)
    conf
  }

  private def refused(settings: Map[String, String], manager: String): String = {
    val failure = intercept[CheckpointFailure](RealTimeMode.check(settings, conf(manager)))
    assert(failure.error == "SessionConfigError")
    failure.reason
  }

  private val ours = classOf[CheckpointLogFileManager].getName

  test("state needs the setting and our file manager, and Spark 4.3") {
    if (RealTimeStarts.areSupported) {
      RealTimeMode.check(permitted, conf(ours))
      assert(refused(Map.empty, ours).contains(s"${Settings.RealTimeMode}=experimental"))
      assert(refused(Map(Settings.RealTimeMode -> "refused"), ours).contains("experimental"))
      Seq("", "org.example.Manager").foreach { manager =>
        assert(refused(permitted, manager).contains(s"$managerKey=$ours"))
      }
    } else {
      assert(refused(permitted, ours).contains("before Spark 4.3"))
    }
  }

  test("the warning names the location without credentials, and the way out") {
    val text = RealTimeMode.withoutUs("s3a://key:secret@bucket/there")
    assert(text.contains("bucket/there") && !text.contains("secret"))
    assert(text.contains("WITHOUT spark-ckpt") && text.contains(s"${Provider.Key}=${Provider.Ours}"))
  }
}
