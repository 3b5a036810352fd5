/**
 * COLLNET: an all-reduce that the network carries out. Every rank gives its elements to the network and gets the
 * result: two hops, however many ranks there are. Where no network does arithmetic an
 * {@link org.millrace.transport.collnet.Aggregator} does it in the network's place; one that does is another
 * {@link org.millrace.transport.collnet.CollectiveNetwork}.
 *
 * <pre>
 *   device ▶ slots ▶ send proxy ─ iallreduce ─▶ network ─▶ slots ▶ receive proxy ─ test ─▶ device
 *                        └────────── requests under way ───────────────┘
 * </pre>
 */
@NullMarked
package org.millrace.transport.collnet;

import org.jspecify.annotations.NullMarked;
