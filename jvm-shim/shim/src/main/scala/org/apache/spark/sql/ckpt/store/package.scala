// SPDX-License-Identifier: Apache-2.0
/**
 * The state store of a subtask: opened for batches and for reads, loaded, acknowledged, freed; its figures, memory and
 * turns.
 */
package org.apache.spark.sql.ckpt.store
