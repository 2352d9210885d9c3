// SPDX-License-Identifier: Apache-2.0
/** Plans of queries, also of those that are not started, and what their state means: its columns, down to the sources. */
package org.apache.spark.sql.ckpt.meaning
