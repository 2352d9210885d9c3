// SPDX-License-Identifier: Apache-2.0
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
