// SPDX-License-Identifier: Apache-2.0
/**
 * Keyed state of one store: families of tables, batches that commit or do not, readers of both. [[KeyedStateBackend]]
 * is the contract for an embedder of the engine.
 */
package io.github.sparkckpt.engine.backend
