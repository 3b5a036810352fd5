package org.millrace.cli.matrix;

import org.millrace.Operation;

/**
 * One cell of the table: a collective in a group.
 *
 * @param number    index among all cells
 * @param operation the collective
 */
record Cell(int number, Operation operation) {
}
