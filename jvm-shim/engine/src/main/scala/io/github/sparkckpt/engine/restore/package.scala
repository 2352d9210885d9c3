// SPDX-License-Identifier: Apache-2.0
/**
 * Restores of state from segments: one key group after another, or row by row when a batch wants them.
 */
package io.github.sparkckpt.engine.restore
