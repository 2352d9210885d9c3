// SPDX-License-Identifier: Apache-2.0
/**
 * Requests and replies between executors, driver and side process (docs/protocol.md). No other package knows their
 * fields.
 */
package org.apache.spark.sql.ckpt.protocol
