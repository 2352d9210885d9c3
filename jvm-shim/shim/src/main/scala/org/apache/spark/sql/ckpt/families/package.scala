// SPDX-License-Identifier: Apache-2.0
/**
 * Column families: how rows of Spark become keys and values of the engine, in which order, and in which key group.
 */
package org.apache.spark.sql.ckpt.families
