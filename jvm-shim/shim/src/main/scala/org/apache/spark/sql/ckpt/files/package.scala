// SPDX-License-Identifier: Apache-2.0
/**
 * State files, and their descriptions: read ahead, read together, written for one store or for several.
 */
package org.apache.spark.sql.ckpt.files
