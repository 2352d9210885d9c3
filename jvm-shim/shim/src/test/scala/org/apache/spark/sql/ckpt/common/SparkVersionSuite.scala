// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.common

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.SPARK_VERSION_SHORT

class SparkVersionSuite extends AnyFunSuite {
  test("the jar knows what it is made for, and runs there") {
    assert(SparkVersion.madeFor.matches("\\d+\\.\\d+"))
    assert(SPARK_VERSION_SHORT.startsWith(SparkVersion.madeFor + "."))
    SparkVersion.check()
  }

  test("another patch version fits") {
    for (version <- Seq("4.2.0", "4.2.7", "4.2.10", "4.2")) {
      assert(SparkVersion.mismatch("4.2", version).isEmpty, version)
    }
  }

  test("another minor version is refused with both versions and the way out in the first line") {
    for (version <- Seq("4.1.1", "4.3.0", "4.20.0", "4.0", "5.2.0")) {
      val text = SparkVersion.mismatch("4.2", version).get
      assert(text.contains("is for Spark 4.2,") && text.contains(s"Spark $version is running"))
      assert(text.contains("spark_ckpt.jar_path()") && text.contains("configure"))
      assert(!text.contains("\n"))
    }
  }

  test("the release with another interface is refused by name") {
    assert(SparkVersion.mismatch("4.0", "4.0.1").isEmpty)
    val text = SparkVersion.mismatch("4.0", "4.0.0").get
    assert(text.contains("does not support Spark 4.0.0") && text.contains("pip install"))
  }
}
