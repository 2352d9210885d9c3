// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

import java.util.concurrent.atomic.LongAdder

/** Figures of local files. */
private[engine] final class LocalTraffic {
  val reads = new LongAdder
  val readBytes = new LongAdder
  val writtenBytes = new LongAdder
}
