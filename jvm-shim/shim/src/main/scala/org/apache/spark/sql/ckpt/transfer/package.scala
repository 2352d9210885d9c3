// SPDX-License-Identifier: Apache-2.0
/** Tasks of imports and exports: state moves between a provider of Spark and this one. */
package org.apache.spark.sql.ckpt.transfer
