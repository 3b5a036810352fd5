/**
 * COLLNET: collectives that the network carries out. Every rank gives its elements to the network and gets the result,
 * on each channel by a {@linkplain org.millrace.collnet.CollectiveNetwork network} of its own.
 *
 * <pre>
 *   device ▶ slots ▶ send proxy ─ iallreduce ─▶ network ─▶ slots ▶ receive proxy ─ test ─▶ device
 *                        └────────── requests under way ───────────────┘
 * </pre>
 */
@NullMarked
package org.millrace.transport.collnet;

import org.jspecify.annotations.NullMarked;
