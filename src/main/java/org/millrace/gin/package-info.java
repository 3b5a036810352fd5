/**
 * GPU-initiated networking by proxy: kernels post descriptors to queues, and an agent carries them out. Puts, gets and
 * signals between windows, which are memory that all ranks of a communicator registered.
 *
 * <p>
 * Descriptors of a queue are carried out in order. A signal becomes visible after the put it belongs to, and after all
 * earlier puts of its context to its peer. A descriptor gets its path once and stays on it, part by part, to its end;
 * {@link org.millrace.gin.PathOrder} is the only place that knows of two paths.
 *
 * <p>
 * A put, from the queue to the peer's memory:
 *
 * <pre>
 *   PeerQueue         a descriptor is taken and decoded
 *      ↓
 *   QueueDrain        it is checked
 *      ↓
 *   GinPeer.choose    its path, once: a PeerConnection has the first two, this rank itself the third
 *      ↓
 *      ├─ FramePath     bytes are the payload of frames, or are copied to memory that both ranks map, and a frame says
 *      │                where; values and signals are in the frames' headers
 *      ├─ DirectPath    this rank's device copies to the peer's window; no frame, or one that brings the signal
 *      └─ SelfPath      this rank is the peer: a copy between its windows; goes straight to InboundFrames
 *      ↓
 *   OutboundFrames    in order: waits until an entry's bytes are readable, sends it or does without it,
 *      ↓              completes its descriptor when its source is free
 *   HelpedSender      where a processor copies to the network: this thread, or the SendHelper's, hands the frame over
 *      ↓
 *   the network
 *      ↓
 *   FrameDispatcher   at the peer: a frame is checked, and its bytes get a place in a window
 *      ↓
 *   InboundFrames     in order: waits until the bytes are written, then signals
 * </pre>
 *
 * <p>
 * A descriptor moves down only. Its number comes back once: when its source is no longer needed, the frame that needed
 * it last calls {@link org.millrace.gin.PeerQueue#complete}.
 *
 * <p>
 * A get takes the DirectPath, or the GetPath: a frame asks, GetAnswers sends the bytes back by the peer's paths, and
 * the get is complete when they are written here.
 */
@NullMarked
package org.millrace.gin;

import org.jspecify.annotations.NullMarked;
