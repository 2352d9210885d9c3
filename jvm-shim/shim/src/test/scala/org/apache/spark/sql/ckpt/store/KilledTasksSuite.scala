// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.{TaskContext, TaskKilledException}

class KilledTasksSuite extends AnyFunSuite {
  test("only the thread of a killed task is told") {
    KilledTasks.check()
    val task = TaskContext.empty()
    TaskContext.setTaskContext(task)
    try {
      KilledTasks.check()
      task.markInterrupted("test")
      intercept[TaskKilledException](KilledTasks.check())
    } finally TaskContext.unset()
    KilledTasks.check()
  }
}
