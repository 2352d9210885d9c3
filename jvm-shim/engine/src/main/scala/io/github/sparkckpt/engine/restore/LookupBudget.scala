// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.restore

/**
 * What lookups of single rows may cost before the rest of a state is loaded. All costs are in rows of a load of
 * everything.
 *
 * @param total       cost above which the rest is loaded; 0 if the first access loads everything
 * @param perRow      cost of a lookup
 * @param perKeyGroup additional cost of the first one in a key group
 */
final case class LookupBudget(total: Long, perRow: Long, perKeyGroup: Long)

object LookupBudget {

  /** No lookups. */
  val Zero: LookupBudget = LookupBudget(total = 0, perRow = 0, perKeyGroup = 0)
}
