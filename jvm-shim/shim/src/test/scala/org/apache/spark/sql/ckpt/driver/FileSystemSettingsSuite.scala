// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import org.apache.hadoop.conf.Configuration
import org.scalatest.funsuite.AnyFunSuite

class FileSystemSettingsSuite extends AnyFunSuite {
  private val ofS3A = Map("fs.s3a.endpoint" -> "http://store:9000", "fs.s3a.bucket.logs.access.key" -> "key")
  private val s3a = "org.apache.hadoop.fs.s3a.S3AFileSystem"

  private def of(location: String, settings: (String, String)*): Map[String, String] = {
    val conf = new Configuration(false)
    (ofS3A ++ settings).foreach { case (key, value) => conf.set(key, value) }
    FileSystemSettings.of(location, conf)
  }

  test("a location gets the settings of its scheme and the default file system, and no other") {
    val default = "fs.defaultFS" -> "hdfs://namenode"
    assert(of("s3a://logs/query", default, "fs.gs.project.id" -> "p", "fs.s3.x" -> "y") == ofS3A + default)
    assert(of("gs://logs/query", default, "fs.gs.project.id" -> "p") == Map(default, "fs.gs.project.id" -> "p"))
  }

  test("s3 and s3n get the settings of S3A where S3A serves them") {
    Seq("s3", "s3n").foreach { scheme =>
      val served = s"fs.$scheme.impl" -> s3a
      assert(of(s"$scheme://logs/query", served) == ofS3A + served)
    }
    assert(of("s3n://logs/query", "fs.s3.impl" -> s3a) == Map.empty)
  }

  test("another file system below s3 keeps its own settings alone") {
    val other = "fs.s3.impl" -> "com.amazon.ws.emr.hadoop.fs.EmrFileSystem"
    assert(of("s3://logs/query", other, "fs.s3.endpoint" -> "e") == Map(other, "fs.s3.endpoint" -> "e"))
    assert(of("s3://logs/query") == Map.empty)
    assert(of("gs://logs/query", "fs.gs.impl" -> s3a) == Map("fs.gs.impl" -> s3a))
  }

  test("locations on Azure get the settings of ABFS, whose names begin otherwise") {
    val key = "fs.azure.account.key.logs.dfs.core.windows.net" -> "key"
    Seq("abfs", "abfss").foreach { scheme =>
      assert(of(s"$scheme://c@logs.dfs.core.windows.net/query", key, s"fs.$scheme.impl" -> "x") == Map(key))
    }
  }

  test("a local location asks for no settings") {
    Seq("file:/tmp/query", "/tmp/query").foreach { location =>
      assert(FileSystemSettings.of(location, fail("the settings were made")) == Map.empty)
    }
  }
}
