// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration

/** Hadoop settings that the side process needs to open a location itself: those of the location's scheme. */
private[ckpt] object FileSystemSettings {
  private val S3A = "s3a"
  private val S3AClass = "org.apache.hadoop.fs.s3a.S3AFileSystem"
  private val OtherSchemesOfS3 = Set("s3", "s3n")
  private val Azure = "azure"
  private val SchemesOfAzure = Set("abfs", "abfss")

  def of(location: String, conf: => Configuration): Map[String, String] = {
    val scheme = location.takeWhile(_ != ':')
    if (!location.contains(":") || scheme == "file") {
      Map.empty
    } else {
      val all = conf
      val schemes =
        if (isServedByS3A(scheme, all)) Set(scheme, S3A)
        else if (SchemesOfAzure(scheme)) Set(Azure)
        else Set(scheme)
      all.asScala
        .map(entry => entry.getKey -> entry.getValue)
        .filter { case (key, _) => key == "fs.defaultFS" || schemes.exists(each => key.startsWith(s"fs.$each.")) }
        .toMap
    }
  }

  /** S3A reads `fs.s3a.*` for every scheme that it serves; other file systems for these schemes may have their own. */
  private def isServedByS3A(scheme: String, conf: Configuration): Boolean =
    OtherSchemesOfS3(scheme) && conf.get(s"fs.$scheme.impl") == S3AClass
}
