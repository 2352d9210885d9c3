// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.common

import org.scalatest.funsuite.AnyFunSuite

class StateIdsSuite extends AnyFunSuite {
  private val id = "01234567-89ab-cdef-0123-456789abcdef"

  test("16 bytes are a UUID") {
    val bytes = (0 to 15).map(i => (((2 * i) % 16 << 4) | ((2 * i + 1) % 16)).toByte).toArray
    assert(StateIds.of(bytes) == id)
  }

  test("dashes do not distinguish ids") {
    assert(StateIds.areEqual(id, id.replace("-", "")) && StateIds.areEqual(id, id))
    assert(!StateIds.areEqual(id, StateIds.newId()))
  }
}
