// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

/** State that exceeds the formats or arrays. The message names the remedy. */
final class StateTooLargeException(message: String) extends RuntimeException(message)
