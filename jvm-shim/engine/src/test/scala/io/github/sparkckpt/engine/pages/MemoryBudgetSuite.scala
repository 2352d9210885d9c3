// SPDX-License-Identifier: Apache-2.0
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
