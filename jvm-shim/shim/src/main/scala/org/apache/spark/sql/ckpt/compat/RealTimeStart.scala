/*
 * Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
 * the License. You may obtain a copy of the License at
 *
 *    http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on
 * an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
 * specific language governing permissions and limitations under the License.
 */
package org.apache.spark.sql.ckpt.compat

import org.apache.hadoop.conf.Configuration

/**
 * A query with state that is about to start in real-time mode.
 *
 * @param name       name of the query, if it has one
 * @param location   checkpoint location, if the query names one
 * @param hadoopConf settings of the location's file system
 */
private[ckpt] final case class RealTimeStart(name: Option[String], location: Option[String], hadoopConf: Configuration)
