// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.memory.MemoryMode

class MemoryModeSuite extends AnyFunSuite {
  test("Spark's memory manager counts the state as heap") {
    assert(StateMemory.memoryMode == MemoryMode.ON_HEAP)
  }
}
