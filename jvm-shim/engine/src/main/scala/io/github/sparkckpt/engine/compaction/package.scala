// SPDX-License-Identifier: Apache-2.0
/**
 * New segments in the place of others: bases of a snapshot's rows, and deltas merged into one.
 */
package io.github.sparkckpt.engine.compaction
