// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

/** Spark declares these methods itself. */
private[ckpt] trait ReadMethodsSince43
private[ckpt] trait ProviderMethodsSince43
