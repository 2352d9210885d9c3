// SPDX-License-Identifier: Apache-2.0
/**
 * Records in pages: in memory as arrays of up to 64 KiB, or on the local disk, within a budget that all stores of an
 * executor share. Who finds the records is their [[RecordOwner]].
 */
package io.github.sparkckpt.engine.pages
