// SPDX-License-Identifier: Apache-2.0
/**
 * Spark's logs of a run, for the log file manager: written exclusively, fenced, prefetched, buffered.
 */
package org.apache.spark.sql.ckpt.logs
