// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.common

import java.util.Properties

/**
 * Minor version of Spark that this jar is made for. On another one, calls fail at the first difference with a linkage
 * error without a message, so the check precedes all other classes of ours.
 */
private[ckpt] object SparkVersion {
  private val Resource = "/org/apache/spark/sql/ckpt/jar.properties"

  /** The minor version that the jar is compiled against. */
  lazy val madeFor: String = {
    val in = getClass.getResourceAsStream(Resource)
    try {
      val properties = new Properties
      properties.load(in)
      properties.getProperty("spark.minor")
    } finally in.close()
  }

  /** True if the running Spark has the jar's minor version. */
  lazy val fits: Boolean = mismatch(madeFor, org.apache.spark.SPARK_VERSION_SHORT).isEmpty

  /** @throws CheckpointFailure if it has not */
  def check(): Unit =
    if (!fits) mismatch(madeFor, org.apache.spark.SPARK_VERSION_SHORT).foreach(text =>
      throw new CheckpointFailure("UnsupportedSparkError", text))

  /** Its stores return other iterators than those of later releases (`ReadStateStore`). */
  private val Incompatible = "4.0.0"

  /** Error message for a jar and a running Spark; None if they fit. */
  private[ckpt] def mismatch(minor: String, running: String): Option[String] =
    if (running == Incompatible) Some(
      s"spark-ckpt does not support Spark $Incompatible: install a later release, for example " +
        "pip install 'pyspark~=4.0.1'")
    else Option.when(running.split('.').take(2).mkString(".") != minor)(
      s"this spark-ckpt jar is for Spark $minor, but Spark $running is running: use the jar that " +
        "spark_ckpt.jar_path() names in this Spark's Python, or start the session with spark_ckpt.configure(), which " +
        "finds it or says that this release has none")
}
