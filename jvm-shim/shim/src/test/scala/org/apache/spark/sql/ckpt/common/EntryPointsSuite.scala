// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.common

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.{CheckpointExtensions, CheckpointLogFileManager, CheckpointStateStoreProvider}

class EntryPointsSuite extends AnyFunSuite {
  test("the names are those of the classes") {
    assert(EntryPoints.Provider == classOf[CheckpointStateStoreProvider].getName)
    assert(EntryPoints.Extensions == classOf[CheckpointExtensions].getName)
    assert(EntryPoints.LogFileManager == classOf[CheckpointLogFileManager].getName)
  }
}
