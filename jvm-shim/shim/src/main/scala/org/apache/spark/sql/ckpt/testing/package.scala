// SPDX-License-Identifier: Apache-2.0
/**
 * Queries under the clock of a user's test, for `spark_ckpt.testing`.
 */
package org.apache.spark.sql.ckpt.testing
