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
