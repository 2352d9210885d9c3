// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.restore

/** Use of a column family by the task of a batch that ended without a commit. */
final class TableRetiredException(name: String)
  extends IllegalStateException(
      s"The batch that used column family '$name' was abandoned; this call comes from a leftover of its task.")
