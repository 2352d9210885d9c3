// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.table

/** Rows of a restored version that are not in its table yet. From any thread. */
private[engine] abstract class ColdRows {

  /** Number of all rows of the version, in the table or not. */
  def rows: Long

  /** Bytes of memory beside the table, estimated during a load. */
  def memoryBytes: Long

  /** Before an access to a key: its row is in the table, if there is one, and stays until [[leave]]. */
  def enter(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit

  /** After the access. */
  def leave(): Unit

  /** Before an access to all rows. */
  def loadForReader(): Unit

  /** Loads the rest. An error is that of the segments, for a caller who can start from them again. */
  def loadRest(): Unit

  /** Runs an action unless an access or a load is under way. */
  def ifIdle(action: => Unit): Unit

  /** Gives the table up: now, or when the access or the load that is under way ends. */
  def close(): Unit
}
