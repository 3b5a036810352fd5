package org.millrace.net.plugin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import org.jspecify.annotations.Nullable;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.net.ConnectionException;
import org.millrace.net.DeviceRegion;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.plugin.NetTable.NetFunction;

/**
 * The sending end of a connection. A frame is complete when the plugin has sent the frame's message and all pieces of
 * the frame's payload. Sent data arrives even if the connection is closed afterwards.
 *
 * <pre>
 *   done  ≤  sent  ≤  posted  ≤  begun  ≤  done + {@value FrameSizes#FRAMES_IN_FLIGHT}       numbers of messages
 * </pre>
 *
 * The message of a frame contains its header. Frame {@code n} stores the message in place
 * {@code n % }{@value FrameSizes#FRAMES_IN_FLIGHT} of the message memory, until the frame is complete.
 */
final class PluginSender extends PluginEnd<PluginSender.SendComm> implements FrameSender {

    /** For each slot, the length of the frame's message in bytes. */
    private final int[] lengths = new int[FrameSizes.FRAMES_IN_FLIGHT];
    private long posted;

    /**
     * Creates the sending end. The sender owns both connected communicators: one for messages with headers, and one for
     * payloads.
     */
    public PluginSender(PluginConnection connection, FrameSizes sizes, long messages, long payloads, BitSet regions) {
        super(connection, sizes, SendComm::new, messages, payloads, regions);
    }

    @Override
    public boolean offer(FrameHeader header, @Nullable MemoryRegion region, long offset) {
        connection.checkOpen();
        long bytes = header.payloadBytes();
        if (bytes < 0 || bytes > MessageFormat.MAX_PAYLOAD_BYTES) {
            throw new IllegalArgumentException(
                    "a payload has 0 to " + MessageFormat.MAX_PAYLOAD_BYTES + " bytes, not " + bytes);
        }
        PluginRegion from = bytes == 0 ? null : devices.region(region, offset, bytes);
        if (window.isFull()) {
            return false;
        }
        long number = window.begun();
        int slot = window.begin();
        long at = message(number);
        boolean onDevice = from != null && from.kind() != plugin_h.NCCL_PTR_HOST();
        boolean inline = !onDevice && bytes <= sizes.inlineBytes();
        MessageFormat.write(memory, at, header, number,
                inline ? 0 : onDevice ? MessageFormat.APART | MessageFormat.ON_DEVICE : MessageFormat.APART);
        lengths[slot] = MessageFormat.HEADER_BYTES;
        lastPieces[slot] = -1;
        if (from != null && inline) {
            MemorySegment.copy(from.view(), offset, memory, at + MessageFormat.HEADER_BYTES, bytes);
            lengths[slot] += (int) bytes;
        } else if (from != null) {
            lastPieces[slot] = queue.add(from, offset, bytes);
        }
        post();
        return true;
    }

    /**
     * Passes messages and pieces to the plugin until the plugin accepts no more. Returns the number of passed bytes.
     */
    private long post() {
        long moved = 0;
        while (posted < window.begun()) {
            int slot = window.slot(posted);
            if (!messages.send(slots, memory.address() + message(posted), lengths[slot], 0)) {
                break;
            }
            moved += lengths[slot];
            posted++;
        }
        // The plugin may send a payload before the message with its header. The receiver posts the receive for the
        // payload only after it has read that message.
        while (!queue.isEmpty() && payloads.send(queue.region(), queue.address(), queue.bytes(), queue.tag())) {
            moved += queue.bytes();
            queue.advance();
        }
        return moved;
    }

    @Override
    public int progress() {
        connection.checkOpen();
        long moved = post();
        while (messages.testOldest()) {
            moved++;
        }
        while (payloads.testOldest()) {
            moved++;
        }
        while (window.done() < messages.window.done() && lastPieces[window.oldest()] < payloads.window.done()) {
            window.finishOldest();
        }
        if (moved == 0) {
            connection.lookAtPeer(true, Long.MAX_VALUE, this.progress);
        }
        return (int) Math.min(moved, Integer.MAX_VALUE);
    }

    /** Describes this end's progress. The text is created only if an error message or a log message contains it. */
    private final Object progress = new Object() {
        @Override
        public String toString() {
            return progress("sent");
        }
    };

    /** Returns whether both plugins support device memory, and this side's plugin accepts the given memory. */
    @Override
    public boolean sendsFrom(DeviceRegion memory) {
        return (sizes.kinds() & plugin_h.NCCL_PTR_CUDA()) != 0 && devices.isTaken(memory, payloads);
    }

    @Override
    public void close() {
        connection.close(this::finish);
    }

    @Override
    public void abort() {
        connection.close(() -> {});
    }

    private void finish() {
        try {
            while (progress() > 0) {
                // Each call of progress() passes messages to the plugin, and completes frames that were sent.
            }
            if (window.isEmpty()) {
                connection.sendShutdown(window.done());
            }
        } catch (ConnectionException lost) {
            // The peer has closed the connection before this side. This is not an error, because the owner closes this
            // sender anyway.
        }
    }

    /** A communicator for sends. */
    static final class SendComm extends PluginComm {

        SendComm(PluginConnection connection, long communicator, Arena arena) {
            super(connection, communicator, NetFunction.CLOSE_SEND, arena);
        }

        /** Begins to send a message. Returns false if the plugin does not accept the message now. */
        boolean send(PluginRegion region, long address, long bytes, int tag) {
            if (window.isFull() || connection.isBroken() || !knows(region)) {
                return false;
            }
            return began(NetFunction.ISEND,
                    table.isend(watch, communicator, address, bytes, tag, memory.handle(region), newRequest()));
        }
    }
}
