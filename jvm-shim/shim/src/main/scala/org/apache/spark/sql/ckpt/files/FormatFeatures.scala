// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.files

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.ckpt.common.{CheckpointFailure, FormatDescription}

/**
 * Refusal of files that this release would misread because a later one wrote them: the JVM's half of
 * `spark_ckpt.features`.
 */
private[ckpt] object FormatFeatures {

  /** Name of the error. */
  val Unsupported = "UnsupportedFormatError"

  /** @throws CheckpointFailure if the `features` of a file's JSON include an unknown one */
  def check(file: String, json: JsonNode): Unit = {
    val unknown = json.path("features").elements().asScala.map(_.asText()).filterNot(FormatDescription.Features).toSeq
    if (unknown.nonEmpty) throw unsupported(file, s"the features ${unknown.mkString(", ")}")
  }

  /** @throws CheckpointFailure if a format's version is not the known one */
  def checkVersion(file: String, found: Int, known: Int): Unit =
    if (found != known) throw unsupported(file, s"version $found of a format")

  private def unsupported(file: String, needs: String) = new CheckpointFailure(Unsupported,
    s"$file requires $needs, which this release of spark-ckpt does not support: a later release wrote it. Upgrade " +
      "spark-ckpt to that release or a newer one, wheel and jar together")
}
