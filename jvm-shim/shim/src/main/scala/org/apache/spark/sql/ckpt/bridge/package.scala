// SPDX-License-Identifier: Apache-2.0
/**
 * The side process seen from the driver: its pipes, its restarts, and Hadoop's files for it.
 */
package org.apache.spark.sql.ckpt.bridge
