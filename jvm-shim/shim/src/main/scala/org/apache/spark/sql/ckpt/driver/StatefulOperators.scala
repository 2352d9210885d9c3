// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.ckpt.compat.TransformWithStateOperators
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan}
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter

/** A columnar rule: no other rule of an extension sees the plan of a micro-batch with its state. */
private[ckpt] object StatefulOperators extends ColumnarRule {
  override val preColumnarTransitions: Rule[SparkPlan] = new Rule[SparkPlan] {
    override def apply(plan: SparkPlan): SparkPlan = {
      if (plan.exists(_.isInstanceOf[StateStoreWriter])) CheckpointDriver.warnOfOtherProvider()
      plan.transformUp(TransformWithStateOperators.replacement)
    }
  }
}
