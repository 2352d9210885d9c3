// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

import java.nio.file.Files

import io.github.sparkckpt.engine.compaction.SnapshotSuite
import io.github.sparkckpt.engine.pages.{LocalTier, MemoryBudget}
import io.github.sparkckpt.engine.restore.{KeyGroupLoadSuite, PendingRestoreSuite, RowLoadsSuite}
import io.github.sparkckpt.engine.segment.SegmentSuite
import io.github.sparkckpt.engine.support.{BackendTesting, EvictedState}
import io.github.sparkckpt.engine.table.{LookupQueueSuite, TableMemorySuite}

/** The suites of the backend again, with nearly all state on the local disk. */
class EvictedStateModelSuite extends StateModelSuite with EvictedState

class EvictedKeyedTableSuite extends KeyedTableSuite with EvictedState

class EvictedListTableSuite extends ListTableSuite with EvictedState

class EvictedFamiliesSuite extends FamiliesSuite with EvictedState

class EvictedReopenedStoreSuite extends ReopenedStoreSuite with EvictedState

class EvictedSegmentSuite extends SegmentSuite with EvictedState

class EvictedTableMemorySuite extends TableMemorySuite with EvictedState

class EvictedSnapshotSuite extends SnapshotSuite with EvictedState

class EvictedLookupQueueSuite extends LookupQueueSuite with EvictedState

class EvictedPendingRestoreSuite extends PendingRestoreSuite with EvictedState

class EvictedRowLoadsSuite extends RowLoadsSuite with EvictedState

class EvictedKeyGroupLoadSuite extends KeyGroupLoadSuite with EvictedState

/** Restores load one key group after another. */
trait ByKeyGroup extends BackendTesting {
  override protected def byKeyGroup: Boolean = true
}

class ByKeyGroupStateModelSuite extends StateModelSuite with ByKeyGroup

class EvictedByKeyGroupStateModelSuite extends StateModelSuite with EvictedState with ByKeyGroup

class ByKeyGroupSnapshotSuite extends SnapshotSuite with ByKeyGroup

class ByKeyGroupPendingRestoreSuite extends PendingRestoreSuite with ByKeyGroup

class EvictedByKeyGroupPendingRestoreSuite extends PendingRestoreSuite with EvictedState with ByKeyGroup

class EvictedRowLimitSuite extends RowLimitSuite with EvictedState

/** A budget of some megabytes: pages and their bookkeeping in memory, and pages on the disk. */
class EvictedMemoryCountSuite extends MemoryCountSuite with EvictedState {
  private lazy val some = new LocalTier(
    4L << 20, new MemoryBudget, () => Files.createTempDirectory("evicted").resolve("pages"))

  override protected def tier: LocalTier = some
}
