// SPDX-License-Identifier: Apache-2.0
/** Plans of queries, started or not, and what their state means: its columns, down to the sources. */
package org.apache.spark.sql.ckpt.meaning
