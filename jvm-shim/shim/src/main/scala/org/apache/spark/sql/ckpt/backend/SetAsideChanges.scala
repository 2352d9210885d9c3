package org.apache.spark.sql.ckpt.backend

/**
 * Committed changes that are kept while their base version is written to once more.
 *
 * @param base the version that they are changes of
 * @param loads which loading of the tables they are changes of
 */
final class SetAsideChanges private[backend] (
    private[backend] val base: Long,
    private[backend] val loads: Int,
    private[backend] val families: Map[String, KeyedFamily],
    private[backend] val dropped: Map[String, KeyedFamily])
