// SPDX-License-Identifier: Apache-2.0
/** What differs between Spark's minor versions: the same types in each folder of sources, and no logic. */
package org.apache.spark.sql.ckpt.compat
