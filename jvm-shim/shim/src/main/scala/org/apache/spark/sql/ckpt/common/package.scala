// SPDX-License-Identifier: Apache-2.0
/**
 * What all other packages stand on: failures, settings, units, redaction, threads, generated constants of formats.
 */
package org.apache.spark.sql.ckpt.common
