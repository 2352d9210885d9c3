// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.common

/** Names of the classes that the configuration of Spark names. No package imports these classes themselves. */
private[ckpt] object EntryPoints {
  final val Provider = "org.apache.spark.sql.ckpt.CheckpointStateStoreProvider"
  final val Extensions = "org.apache.spark.sql.ckpt.CheckpointExtensions"
  final val LogFileManager = "org.apache.spark.sql.ckpt.CheckpointLogFileManager"
}
