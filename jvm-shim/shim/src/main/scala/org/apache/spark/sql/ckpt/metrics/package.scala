// SPDX-License-Identifier: Apache-2.0
/** Figures of the driver and of each query in Spark's metrics system. */
package org.apache.spark.sql.ckpt.metrics
