// SPDX-License-Identifier: Apache-2.0
/**
 * The driver's end: the endpoint that executors ask, the description of the running batch, real-time mode.
 */
package org.apache.spark.sql.ckpt.driver
