// SPDX-License-Identifier: Apache-2.0
/**
 * Segments, the files of state: what they consist of, and how they are written and read, block by block. The format is
 * docs/protocol.md, section 2. Nothing here knows a table.
 */
package io.github.sparkckpt.engine.segment
