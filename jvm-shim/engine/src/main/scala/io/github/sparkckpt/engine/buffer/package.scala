// SPDX-License-Identifier: Apache-2.0
/**
 * Changes of the open batch, on top of a table that stays as it is: what readers see of them, and what a delta gets.
 */
package io.github.sparkckpt.engine.buffer
