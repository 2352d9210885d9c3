// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.protocol.{Blocks, SegmentRef}

class NewestBaseSuite extends AnyFunSuite {
  private def committed(base: NewestBase, versions: Range): Unit =
    versions.foreach(version => base.committed(version, hasDelta = true, None))

  test("without a base every delta counts, from the beginning or from what was loaded") {
    val base = new NewestBase
    assert(base.version == -1)
    base.loaded(0, 0)
    committed(base, 1 to 5)
    assert(base.version == 0)
    base.loaded(20, 3)
    assert(base.version == 17)
    committed(base, 21 to 22)
    assert(base.version == 17)
  }

  test("a base takes the place of the deltas until its version") {
    val base = new NewestBase
    base.loaded(10, 4)
    committed(base, 11 to 14)
    base.committed(15, hasDelta = true, base = Some(12))
    assert(base.version == 12)
    committed(base, 16 to 17)
    assert(base.version == 12)
    base.committed(18, hasDelta = true, base = Some(17))
    assert(base.version == 17)
  }

  test("batches without changes do not let a store lag") {
    val base = new NewestBase
    base.loaded(0, 0)
    (1 to 9).foreach(version => base.committed(version, hasDelta = version == 4, None))
    assert(base.version == 8)
  }

  test("a version that is committed once more counts once, and its base is that of the attempt that counts") {
    val base = new NewestBase
    base.loaded(0, 0)
    committed(base, 1 to 3)
    base.committed(4, hasDelta = true, base = Some(2))
    assert(base.version == 2)
    base.committed(4, hasDelta = true, None)
    assert(base.version == 0)
    committed(base, 5 to 6)
    assert(base.version == 0)
  }

  test("merged deltas count as one") {
    val base = new NewestBase
    base.loaded(10, 0)
    committed(base, 11 to 16)
    val merged = SegmentRef(11, 14, new Blocks(Array.empty, Array.empty), 0)
    base.committed(17, hasDelta = true, None, Some(merged))
    assert(base.version == 17 - 4)
  }
}
