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
package org.apache.spark.sql.ckpt

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.ckpt.common.SparkVersion
import org.apache.spark.sql.ckpt.driver.{RealTimeMode, StatefulOperators}
import org.apache.spark.sql.classic.SparkSession

/**
 * Extension for queries with `transformWithState`, to be named in `spark.sql.extensions`. Spark runs that operator with
 * its RocksDB provider only, by class name (`TransformWithStateExecBase.validateStateStoreProvider`). The extension
 * replaces the operator by one that accepts ours. It also warns if a query continues with another provider than the
 * session sets, and checks queries with state that start in real-time mode.
 */
class CheckpointExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    SparkVersion.check()
    extensions.injectColumnar(_ => StatefulOperators)
    extensions.injectHintResolutionRule {
      case session: SparkSession => new RealTimeMode.Check(session)
      case other => throw new IllegalStateException(s"${other.getClass.getName} has no analyzer")
    }
  }
}
