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
