// SPDX-License-Identifier: Apache-2.0
/**
 * What the configuration of Spark and its event logs name, so that nothing here ever moves: the provider, the
 * extensions, the log file manager, the event. No other package imports it, but for the event.
 */
package org.apache.spark.sql.ckpt
