// SPDX-License-Identifier: Apache-2.0
/**
 * Bases and merges of deltas in background threads, which share a core.
 */
package org.apache.spark.sql.ckpt.compaction
