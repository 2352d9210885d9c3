// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.hadoop.conf.Configuration

/**
 * A query with state that is about to start in real-time mode.
 *
 * @param name name of the query, if it has one
 * @param location checkpoint location, if the query names one
 * @param hadoopConf settings of the location's file system
 * @param transformsWithState whether it has a `transformWithState`
 */
private[ckpt] final case class RealTimeStart(
    name: Option[String],
    location: Option[String],
    hadoopConf: Configuration,
    transformsWithState: Boolean)
