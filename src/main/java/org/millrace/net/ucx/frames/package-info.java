/**
 * Frames as UCX's tagged messages. A frame's header, and its payload if that is short, are one message, for which the
 * receiver has buffers ready; a longer payload is a message of its own, which is received straight to its destination
 * once that is known.
 *
 * <pre>
 *   sender                                                        receiver
 *     hello: where my worker is, a tag to answer with    ──TCP──▶
 *              ◀── tag of the answer: where my worker is, a tag for frames
 *     tag + HEADER:  header, short payload               ──UCX──▶  buffers that wait for headers
 *     tag + PAYLOAD: long payload                        ──UCX──▶  its destination
 *              ◀── answer's tag + CREDIT: how many frames have a destination
 *     shutdown message: how many frames there were                ──TCP──▶
 * </pre>
 *
 * <p>
 * Why tags: active messages would have UCX call a function of ours for each, and streams copy each byte; a tagged
 * receive is looked at when we like, and UCX's rendezvous for it writes straight to the destination, by whatever copies
 * best. Tags are random, so that no message of another process and none of another connection matches.
 *
 * <p>
 * The TCP connection, over which the two ends found each other, stays: it says that the peer lives, that it meant to
 * go, or whom it has lost. UCX's own errors count as well.
 */
@NullMarked
package org.millrace.net.ucx.frames;

import org.jspecify.annotations.NullMarked;
