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
package org.apache.spark.sql.ckpt.bridge

import org.scalatest.funsuite.AnyFunSuite

class BridgeProcessSuite extends AnyFunSuite {
  test("the level of a line, in either format of the log") {
    for (level <- Seq("CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG")) {
      assert(BridgeProcess.levelOf(s"$level spark_ckpt.coordinator.job [orders, batch 7] a message") === level)
      assert(BridgeProcess.levelOf(s"""{"level": "$level", "message": "ERROR in a message"}""") === level)
    }
  }

  test("lines of other programs have no level of ours") {
    for (line <- Seq("", " ", "{", """{"level": """, "WARNINGS are here", "{\"level\": \"")) {
      assert(!Seq("CRITICAL", "ERROR", "WARNING", "DEBUG").contains(BridgeProcess.levelOf(line)), line)
    }
  }
}
