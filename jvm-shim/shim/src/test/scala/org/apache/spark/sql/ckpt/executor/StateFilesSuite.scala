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
package org.apache.spark.sql.ckpt.executor

import java.nio.file.Files

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

class StateFilesSuite extends AnyFunSuite {
  private def names(directory: java.nio.file.Path): Seq[String] =
    Files.list(directory).iterator().asScala.map(_.getFileName.toString).toSeq

  test("a file has its bytes, a name of its own, and nothing beside it") {
    val directory = Files.createTempDirectory("state-files")
    val files = new StateFiles(new Path(directory.toUri), new Configuration())
    val first = files.write("delta")(_.write(Array[Byte](1, 2, 3)))
    val second = files.write("delta")(_.write(Array[Byte](4)))
    assert(first != second && first.startsWith("shared/delta-"))
    assert(files.length(first) == 3)
    assert(names(directory.resolve("shared")).map("shared/" + _).toSet == Set(first, second))
  }

  test("a write that fails leaves nothing behind") {
    val directory = Files.createTempDirectory("state-files")
    val files = new StateFiles(new Path(directory.toUri), new Configuration())
    intercept[IllegalStateException] {
      files.write("base") { out =>
        out.write(1)
        throw new IllegalStateException("no")
      }
    }
    assert(names(directory.resolve("shared")).isEmpty)
  }
}
