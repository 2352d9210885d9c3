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
