/**
 * A network that reduces, where no card does: every rank is an aggregator for the others.
 *
 * <pre>
 *   all-reduce, small    each rank sends all of its elements to each other, and reduces them all: one hop
 *   all-reduce           each rank sends each other the part that this one reduces, and then the result: two hops,
 *                        and no rank moves or adds more than another
 *   reduce-scatter       the first of these two hops
 *   all-gather           each rank sends its part to each other
 * </pre>
 *
 * <p>
 * A request is cut into pieces, and each piece belongs to one of a rank's threads:
 * {@link org.millrace.collnet.mesh.MeshAggregator}. A thread has connections of its own with the same thread of each
 * other rank, so that threads share nothing but the list of requests. All ranks reduce in the order of ranks: every
 * rank gets the same bits, in every run.
 */
@NullMarked
package org.millrace.collnet.mesh;

import org.jspecify.annotations.NullMarked;
