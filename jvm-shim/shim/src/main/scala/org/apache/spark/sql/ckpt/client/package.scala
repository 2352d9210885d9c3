// SPDX-License-Identifier: Apache-2.0
/**
 * The coordinator as an executor sees it: it is asked, and notifies the stores that are loaded here.
 */
package org.apache.spark.sql.ckpt.client
