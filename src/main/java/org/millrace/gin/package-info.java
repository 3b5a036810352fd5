/**
 * GPU-initiated networking by proxy: kernels post descriptors to queues, and an agent carries them out. Descriptors are
 * puts, gets and signals between windows. A window is memory that all ranks of a communicator registered.
 *
 * <p>
 * Descriptors of a queue are carried out in order. A signal becomes visible after its own put, and after all earlier
 * puts of its context to its peer. A descriptor gets a path once and stays on it, part by part, until it is complete.
 * {@link org.millrace.gin.PathOrder} is the only class that knows several paths.
 *
 * <p>
 * A put from the queue to the peer's memory:
 *
 * <pre>
 *   PeerQueue         a descriptor is taken and decoded
 *      ↓
 *   QueueDrain        the descriptor is checked
 *      ↓
 *   GinPeer.choose    its path is chosen once: a PeerConnection has the first two paths, this rank itself the third
 *      ↓
 *      ├─ FramePath     bytes are the payload of frames, or are copied to memory that both ranks map, and a frame
 *      │                contains their location; values and signals are in the frames' headers
 *      ├─ DirectPath    this rank's device copies to the peer's window; there is no frame, or a frame with the signal
 *      └─ SelfPath      this rank is the peer: a copy between its windows, which is passed directly to InboundFrames
 *      ↓
 *   OutboundFrames    in order: waits until an entry's bytes are readable, sends it or passes it without a frame,
 *      ↓              completes its descriptor when its source is free
 *   HelpedSender      (of the plugin) if a processor copies to the network: this thread or the helper passes the frame on
 *      ↓
 *   the network
 *      ↓
 *   FrameDispatcher   at the peer: a frame is checked, and its bytes get a location in a window
 *      ↓
 *   InboundFrames     in order: waits until the bytes are written, then signals
 * </pre>
 *
 * <p>
 * A descriptor moves only down. Its number returns once: when its source is no longer needed, the last frame that
 * needed it calls {@link org.millrace.gin.PeerQueue#complete}.
 *
 * <p>
 * A get uses the DirectPath or the GetPath. In the GetPath a frame requests the bytes, GetAnswers at the peer sends
 * them back by the peer's paths, and the get is complete when they are written here.
 */
@NullMarked
package org.millrace.gin;

import org.jspecify.annotations.NullMarked;
