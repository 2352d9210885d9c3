// SPDX-License-Identifier: Apache-2.0
/** The tab of Spark's UI and its pages, filled by events in Spark's listener bus and event log. */
package org.apache.spark.sql.ckpt.ui
