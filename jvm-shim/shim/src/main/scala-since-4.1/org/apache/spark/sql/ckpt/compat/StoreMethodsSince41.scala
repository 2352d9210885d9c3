// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.execution.streaming.state.{StateStoreProvider, SupportsFineGrainedReplay}

/** Spark declares these methods itself. */
private[ckpt] trait ReadMethodsSince41
private[ckpt] trait WriteMethodsSince41
private[ckpt] trait ProviderMethodsSince41 extends StateStoreProvider with SupportsFineGrainedReplay
