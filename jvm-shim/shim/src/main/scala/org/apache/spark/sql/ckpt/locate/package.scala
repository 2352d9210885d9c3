// SPDX-License-Identifier: Apache-2.0
/**
 * Where the state of a version is: as the coordinator says, or as a directory's own files say. And whose rows it has.
 */
package org.apache.spark.sql.ckpt.locate
