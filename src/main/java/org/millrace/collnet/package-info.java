/**
 * Networks that reduce: the requests to such a network, the interface of networks other than Millrace's own, and
 * Millrace's own network. In {@link org.millrace.collnet.MeshNetwork} no network card reduces. Instead every rank is an
 * aggregator for the others.
 *
 * <pre>
 *   all-reduce, small    each rank sends all of its elements to each other rank, and reduces all elements: one hop
 *   all-reduce           each rank sends to each other rank the part that the other rank reduces, and then sends its
 *                        result to all: two hops, and no rank moves or adds more than another rank
 *   reduce-scatter       the first of these two hops
 *   all-gather           each rank sends its part to each other rank
 * </pre>
 *
 * <p>
 * A request is cut into pieces, and each piece belongs to one of a rank's threads, see {@code MeshAggregator}. Each
 * thread has its own connection to the corresponding thread of each other rank, so threads share only the list of
 * requests. All ranks reduce in the order of ranks. Every rank therefore gets the same bits in every run.
 */
@NullMarked
package org.millrace.collnet;

import org.jspecify.annotations.NullMarked;
