// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

/** Spark declares these methods itself. */
private[ckpt] trait ReadMethodsSince42
private[ckpt] trait WriteMethodsSince42
private[ckpt] trait ProviderMethodsSince42 extends ProviderMethodsSince41
