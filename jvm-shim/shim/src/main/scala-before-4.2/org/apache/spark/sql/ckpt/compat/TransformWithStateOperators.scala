// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.execution.SparkPlan

/** Before 4.2, Spark's operators of `transformWithState` accept any provider. */
private[ckpt] object TransformWithStateOperators {
  val replacement: PartialFunction[SparkPlan, SparkPlan] = PartialFunction.empty
}
