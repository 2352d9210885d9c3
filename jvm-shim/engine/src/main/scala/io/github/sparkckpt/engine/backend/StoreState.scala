// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

/**
 * A version of the state, and its id for the coordinator.
 *
 * @param version number of batches that led to it; -1 without state
 * @param stateId empty at version 0
 */
final case class StateVersion(version: Long, stateId: String)

object StateVersion {
  val Zero: StateVersion = StateVersion(0, "")
  val None: StateVersion = StateVersion(-1, "")
}

/**
 * The state of a store between two versions. In each one the tables hold `base`:
 *
 * {{{
 *             openForWrite          commit
 *   Loaded ----------------> Open ----------> Committed ---- fold ----> Loaded (of the next version)
 *      ^                       |               |     ^
 *      |        discard        |   undoCommit  |     | discard
 *      +-----------------------+---------------+     |
 *                                    reopen    |     |
 *                                              +-> Reopened ---- commit ----> Committed (and kept)
 * }}}
 *
 * `undoCommit` of a batch that replaced an earlier one restores that one.
 */
sealed abstract class StoreState {

  /** The version in the tables. */
  def base: StateVersion

  /** True if there is nothing on top of the tables. */
  def isLoaded: Boolean = false

  /** True if a batch is open. */
  def isOpen: Boolean = false

  /** True if a committed batch is not folded yet. */
  def isCommitted: Boolean = false

  /** True if the batch on top of the tables repeats a committed one. */
  def isRepeated: Boolean = false

  /** Id of the state after the committed batch, even while its base is open again. */
  def committedId: Option[String] = None
}

object StoreState {

  /** The tables hold the newest version. */
  final case class Loaded(base: StateVersion) extends StoreState {
    override def isLoaded: Boolean = true
  }

  /** A batch writes on top of the tables. */
  final case class Open(base: StateVersion) extends StoreState {
    override def isOpen: Boolean = true
  }

  /**
   * A batch has ended.
   *
   * @param stateId  id of the state that it leads to
   * @param replaced commit of an earlier run of the batch, until this one is known to count
   */
  final case class Committed(base: StateVersion, stateId: String, replaced: Option[CommittedChanges])
      extends StoreState {
    override def isCommitted: Boolean = true
    override def isRepeated: Boolean = replaced.isDefined
    override def committedId: Option[String] = Some(stateId)
  }

  /** A batch writes on top of the tables, and the commit of an earlier run of it is kept. */
  final case class Reopened(base: StateVersion, kept: CommittedChanges) extends StoreState {
    override def isOpen: Boolean = true
    override def isRepeated: Boolean = true
    override def committedId: Option[String] = Some(kept.stateId)
  }
}

/** Committed changes, kept while their base version is open again. Their content is the backend's. */
abstract class CommittedChanges {

  /** Id of the state that they lead to. */
  def stateId: String
}
