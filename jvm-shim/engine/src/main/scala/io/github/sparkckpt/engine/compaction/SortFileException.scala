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
package io.github.sparkckpt.engine.compaction

import java.io.{File, IOException}

/**
 * A failure of the temporary file that sorts a base snapshot. The snapshot is not written; the state is complete
 * without it.
 */
final class SortFileException(val file: File, val what: String, cause: Throwable)
  extends IOException(
    s"The temporary file $file, which sorts a base snapshot, $what. Check the disk, its free space, and what else " +
      "deletes files there",
    cause)
