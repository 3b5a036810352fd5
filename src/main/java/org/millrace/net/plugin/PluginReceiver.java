package org.millrace.net.plugin;

import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import org.jspecify.annotations.Nullable;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;

/**
 * The receiving end of a connection. For each message with a header, a receive is posted before the message can arrive.
 * A receive for a longer payload is posted when the payload's destination is known. If the plugin supports receives
 * with several buffers, one receive is posted for several waiting payloads.
 *
 * <pre>
 *   done  ≤  accepted  ≤  posted  ≤  accepted + {@value FrameSizes#FRAMES_IN_FLIGHT}       frames' messages
 *   the message of the next frame to accept is in slot accepted % {@value FrameSizes#FRAMES_IN_FLIGHT}
 * </pre>
 */
final class PluginReceiver extends PluginEnd<RecvComm> implements FrameReceiver {

    private final PayloadReceives receives;
    private final FrameHeader header = new FrameHeader();
    private boolean headerShown;
    /** Whether one message contains both the header that poll has returned and the header's payload. */
    private boolean inline;
    /** Whether the payload of the header that poll has returned is in the sender's device memory. */
    private boolean onDevice;
    private long posted;

    /**
     * Creates the receiving end. The receiver owns both connected communicators: one for messages with headers, and one
     * for payloads.
     */
    public PluginReceiver(PluginConnection connection, FrameSizes sizes, long messages, long payloads, BitSet regions) {
        super(connection, sizes, RecvComm::new, messages, payloads, regions);
        receives = new PayloadReceives(this.payloads, queue, sizes.maxRecvs());
        postMessages();
    }

    private void postMessages() {
        while (posted - window.begun() < FrameSizes.FRAMES_IN_FLIGHT && !messages.window.isFull()) {
            long address = memory.address() + message(posted);
            if (messages.staged() == 0 && !messages.stage(slots, address, slotBytes, 0) || !messages.post()) {
                break;
            }
            posted++;
        }
    }

    @Override
    public @Nullable FrameHeader poll() {
        connection.checkOpen();
        if (headerShown) {
            return header;
        }
        postMessages();
        if (window.isFull()) {
            return null;
        }
        if (!messages.testOldest()) {
            lookAtPeer();
            return null;
        }
        read(message(window.begun()), messages.size(0));
        headerShown = true;
        return header;
    }

    /** Reads a message with a header. Each value in the message is checked before it is used. */
    private void read(long at, int length) {
        if (length < MessageFormat.HEADER_BYTES || length > slotBytes) {
            throw connection.corrupt("the message of frame " + window.begun() + " has " + length + " bytes");
        }
        MessageFormat.read(memory, at, header);
        long number = MessageFormat.number(memory, at);
        long bytes = header.payloadBytes();
        int flags = MessageFormat.flags(memory, at);
        inline = (flags & MessageFormat.APART) == 0;
        onDevice = (flags & MessageFormat.ON_DEVICE) != 0;
        if (number != window.begun() || inline && onDevice) {
            throw connection.corrupt("a message states that it is of frame " + number + ", with flags " + flags
                    + "; that of frame " + window.begun() + " is expected");
        }
        long with = inline ? bytes : 0;
        if (bytes < 0 || bytes > MessageFormat.MAX_PAYLOAD_BYTES || with > sizes.inlineBytes()
                || length != MessageFormat.HEADER_BYTES + with || !inline && bytes == 0) {
            throw connection.corrupt("the message of frame " + window.begun() + " has " + length
                    + " bytes and states that its payload has " + bytes + (inline ? ", all of them in it" : ""));
        }
    }

    @Override
    public void accept(@Nullable MemoryRegion region, long offset) {
        connection.checkAccept(headerShown);
        long bytes = header.payloadBytes();
        int slot = window.slot(window.begun());
        long lastPiece = -1;
        if (bytes > 0) {
            PluginRegion to = devices.region(region, offset, bytes);
            if (inline && to.kind() != plugin_h.NCCL_PTR_HOST()) {
                throw new IllegalArgumentException("a payload that came with its header cannot go to " + to);
            }
            if (inline) {
                MemorySegment.copy(memory, (long) slot * slotBytes + MessageFormat.HEADER_BYTES, to.view(), offset,
                        bytes);
            } else {
                lastPiece = queue.add(to, offset, bytes);
            }
        }
        lastPieces[slot] = lastPiece;
        headerShown = false;
        window.begin();
        // If a receive can have several buffers, the next call of progress() posts a common receive for the payloads
        // that were accepted by then.
        if (sizes.maxRecvs() == 1) {
            receives.post();
        }
        complete();
    }

    @Override
    public boolean isOnDevice() {
        return headerShown && onDevice;
    }

    private void complete() {
        while (!window.isEmpty() && lastPieces[window.oldest()] < receives.finishedPieces()) {
            window.finishOldest();
        }
    }

    @Override
    public int progress() {
        connection.checkOpen();
        long before = window.done();
        int moved = receives.post() + receives.progress();
        complete();
        if (moved == 0 && window.done() == before) {
            lookAtPeer();
        }
        return moved + (int) (window.done() - before);
    }

    private void lookAtPeer() {
        connection.lookAtPeer(!headerShown, window.done(), progress);
    }

    /** Describes this end's progress. The text is created only when a message needs it. */
    private final Object progress = new Object() {
        @Override
        public String toString() {
            return progress("received");
        }
    };

    @Override
    public void close() {
        connection.close(() -> connection.sendShutdown(window.done()));
    }

}
