// SPDX-License-Identifier: Apache-2.0
/**
 * Tables: the folded state of one column family. Records are found by the hash of their key, by prefix or in order.
 * A table may have [[ColdRows]], which a restore has left where they are.
 */
package io.github.sparkckpt.engine.table
