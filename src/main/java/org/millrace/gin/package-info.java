/**
 * GPU-initiated networking through a CPU thread: kernels post descriptors to queues, and an agent carries them out.
 * Descriptors are puts, gets and signals between windows. A window is memory that all ranks of a communicator
 * registered.
 *
 * <p>
 * Descriptors of one queue are taken in the order of the queue. A signal becomes visible after its own put, and after
 * all earlier puts of its context to the same peer. Each descriptor has one path, chosen once. The path moves the
 * descriptor part by part until it is complete. Only {@link org.millrace.gin.PathOrder} considers several paths.
 *
 * <p>
 * Steps of a put, from the queue to the peer's memory:
 *
 * <pre>
 *   PeerQueue         a descriptor is taken from the queue and decoded
 *      ↓
 *   QueueDrain        the descriptor is checked
 *      ↓
 *   GinPeer.choose    the path is chosen: FramePath or DirectPath to another rank, SelfPath to this rank itself
 *      ↓
 *      ├─ FramePath     The bytes are the payload of frames. Or they are copied into a ring that both ranks map, and a
 *      │                frame contains their location. Inline values and signals are in the frames' headers.
 *      ├─ DirectPath    This rank's device copies to the peer's window. There is no frame, or a frame with the signal.
 *      └─ SelfPath      The put is a copy between windows of this rank. It continues directly at InboundFrames.
 *      ↓
 *   OutboundFrames    in order: waits until an entry's bytes are readable, then sends the entry's frame, if there is
 *      ↓              one, and completes the descriptor when the source may be overwritten
 *   HelpedSender      only in the plugin, and only for networks that copy payloads with the processor: the agent's
 *      ↓              thread or a helper thread lets the network make progress
 *   the network
 *      ↓
 *   FrameDispatcher   at the peer: a frame is checked, and its bytes get a location in a window
 *      ↓
 *   InboundFrames     in order: waits until the bytes are written, then increases the signal
 * </pre>
 *
 * <p>
 * A descriptor moves only down these steps. Only its completion moves up. A descriptor has one or more entries, and the
 * last entry that needs the source passes the descriptor's index to {@link org.millrace.gin.PeerQueue#complete}.
 *
 * <p>
 * A get uses DirectPath or GetPath. In GetPath a frame requests the bytes. At the peer, GetAnswers sends them back
 * through the peer's own frames. The get is complete when the bytes are written at the requesting rank.
 */
@NullMarked
package org.millrace.gin;

import org.jspecify.annotations.NullMarked;
