package org.millrace.cli.matrix;

import org.millrace.cli.launch.RankEvent;

/**
 * A rank has finished a cell.
 *
 * @param cell    number of the cell
 * @param wrong   elements that were not what they must be
 * @param ran     operations that ran as they were meant to
 * @param refusal why others could not; empty if all did
 * @param failure what went wrong besides; empty if nothing did
 */
record MatrixEvent(int rank, int cell, long wrong, int ran, String refusal, String failure) implements RankEvent {
}
