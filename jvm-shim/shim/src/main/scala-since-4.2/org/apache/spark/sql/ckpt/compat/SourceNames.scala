// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.streaming.{HasStreamingSourceIdentifyingName, UserProvided}

/** Names of a query's sources. */
private[ckpt] object SourceNames {

  /** The name that a query gives a source of its plan; None without one. */
  def givenTo(relation: LogicalPlan): Option[String] = relation match {
    case source: HasStreamingSourceIdentifyingName => source.sourceIdentifyingName match {
      case UserProvided(name) => Some(name)
      case _ => None
    }
    case _ => None
  }
}
