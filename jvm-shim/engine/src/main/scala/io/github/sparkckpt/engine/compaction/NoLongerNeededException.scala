// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.compaction

/** What is being written is not needed any more: a normal end, and no failure. */
final class NoLongerNeededException extends RuntimeException("It is no longer needed.", null, false, false)
