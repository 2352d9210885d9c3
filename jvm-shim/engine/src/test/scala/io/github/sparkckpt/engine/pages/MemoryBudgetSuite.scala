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
package io.github.sparkckpt.engine.pages

import org.scalatest.funsuite.AnyFunSuite

class MemoryBudgetSuite extends AnyFunSuite {
  test("accounts add up, and closed ones count for nothing") {
    val budget = new MemoryBudget
    val (a, b) = (budget.open(), budget.open())
    a.set(100, 50)
    b.set(200, 100)
    a.set(150, 20)
    assert(budget.used == 350 && budget.evictable == 120)
    assert(budget.accounts == 2 && a.othersCanEvict)
    b.close()
    b.close()
    assert(budget.accounts == 1 && !a.othersCanEvict)
    b.set(7, 7)
    assert(budget.used == 150 && budget.evictable == 20)
    assert(b.excess(0) == 0)
  }

  test("an account evicts by its share of a small excess, and all of a large one") {
    val budget = new MemoryBudget
    val (small, large) = (budget.open(), budget.open())
    small.set(1000, 100)
    large.set(9300, 900)
    assert(small.excess(10300) == 0)
    assert(Seq(small, large).map(_.excess(10000)) == Seq(61, 300))
    assert(Seq(small, large).map(_.excess(9000)) == Seq(1300, 1300))
  }
}
