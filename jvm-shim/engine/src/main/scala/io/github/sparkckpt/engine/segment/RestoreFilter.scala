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
package io.github.sparkckpt.engine.segment

/** Blocks to restore. */
trait RestoreFilter {

  /** True if a block of this key group may be here. If not, the stream is damaged. */
  def acceptsKeyGroup(keyGroup: Int): Boolean
}

object RestoreFilter {

  /** Key groups from `first` to `last`, both included. */
  def range(first: Int, last: Int): RestoreFilter = (keyGroup: Int) => keyGroup >= first && keyGroup <= last
}

/** Rows of a segment to restore: subtasks that share key groups have rows in the same blocks. */
trait RowFilter {

  /** True if a key belongs to this subtask. */
  def accepts(family: String, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean
}

object RowFilter {

  /** All rows; never evaluated. */
  val All: RowFilter = (_: String, _: AnyRef, _: Long, _: Int) => true
}
