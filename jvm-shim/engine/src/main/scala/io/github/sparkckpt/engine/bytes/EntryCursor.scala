// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.bytes

/** Points at a key and its value. A value length of -1 stands for a removed key. */
private[engine] final class EntryCursor {
  var keyGroup: Int = 0
  var keyBase: AnyRef = _
  var keyOffset: Long = 0L
  var keyLength: Int = 0
  var valueBase: AnyRef = _
  var valueOffset: Long = 0L
  var valueLength: Int = 0
}
