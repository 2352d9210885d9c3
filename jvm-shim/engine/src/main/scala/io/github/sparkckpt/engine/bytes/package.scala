// SPDX-License-Identifier: Apache-2.0
/**
 * Bytes of rows: compared, hashed, copied, and pointed at. Everything above refers to keys and values as a base, an
 * offset and a length, as Spark's `Platform` does.
 */
package io.github.sparkckpt.engine.bytes
