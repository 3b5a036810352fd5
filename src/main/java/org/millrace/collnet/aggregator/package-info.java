/**
 * Aggregators on hosts of their own: processes that reduce for the ranks of any group, as a switch would. Ranks connect
 * to them over TCP, and need none of them in their own processes.
 *
 * <pre>
 *   rank 0 ─ contribution ─▶            ─ result ─▶ rank 0
 *   rank 1 ─ contribution ─▶ aggregator ─ result ─▶ rank 1
 * </pre>
 *
 * <p>
 * A request is cut into pieces, and these are dealt to the aggregators in turns. An aggregator adds in the order of
 * ranks, when all have given theirs: every rank gets the same bits, in every run. It knows nothing beforehand: the
 * frames of a piece say what is to be done, and have to say the same.
 */
@NullMarked
package org.millrace.collnet.aggregator;

import org.jspecify.annotations.NullMarked;
