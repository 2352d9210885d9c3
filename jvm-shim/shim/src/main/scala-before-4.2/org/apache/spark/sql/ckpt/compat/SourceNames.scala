// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Names of a query's sources, which Spark has since 4.2. */
private[ckpt] object SourceNames {

  /** The name that a query gives a source of its plan; None without one. */
  def givenTo(relation: LogicalPlan): Option[String] = None
}
