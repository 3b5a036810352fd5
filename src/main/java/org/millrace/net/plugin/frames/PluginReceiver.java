package org.millrace.net.plugin.frames;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import org.jspecify.annotations.Nullable;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;

/**
 * The receiving end. A receive is posted for each message that may come; for a long payload when its destination is
 * known, and for several payloads at once where the plugin can and several wait.
 *
 * <pre>
 *   completed  ≤  accepted  ≤  posted  ≤  accepted + {@value FrameSizes#FRAMES_IN_FLIGHT}       frames' messages
 *   the message of the frame that is accepted next is in its slot, accepted % {@value FrameSizes#FRAMES_IN_FLIGHT}
 * </pre>
 */
public final class PluginReceiver implements FrameReceiver {

    private final PluginConnection connection;
    private final FrameSizes sizes;
    private final Arena arena;
    private final RecvComm messages;
    private final RecvComm payloads;
    private final PluginRegion slots;
    private final MemorySegment memory;
    private final int slotBytes;
    private final PayloadQueue queue;
    private final PayloadReceives receives;
    private final DeviceMemories devices;
    private final FrameHeader header = new FrameHeader();
    private boolean headerShown;
    /** The payload of the header that was shown is in its message. */
    private boolean inline;
    /** It lies in a device's memory at the peer. */
    private boolean onDevice;
    /** Of each frame under way the last piece of its payload, -1 if it has come already. */
    private final long[] lastPieces = new long[FrameSizes.FRAMES_IN_FLIGHT];
    private long posted;
    private long accepted;
    private long completed;

    /**
     * A receiver on communicators that are connected: it owns them.
     *
     * @param messages communicator of the frames' messages
     * @param payloads communicator of the payloads that do not go with them
     */
    public PluginReceiver(PluginConnection connection, FrameSizes sizes, long messages, long payloads, BitSet regions) {
        this.connection = connection;
        this.sizes = sizes;
        arena = Arena.ofShared();
        slotBytes = sizes.messageBytes();
        slots = PluginSender.newSlots(connection.network(), arena, sizes, regions);
        memory = slots.view();
        this.messages = new RecvComm(connection, messages, arena);
        this.payloads = new RecvComm(connection, payloads, arena);
        queue = new PayloadQueue(FrameSizes.FRAMES_IN_FLIGHT, sizes.pieceBytes());
        devices = new DeviceMemories(connection, regions);
        receives = new PayloadReceives(this.payloads, queue, sizes.maxRecvs());
        connection.onRelease(this::release);
        postMessages();
    }

    private void postMessages() {
        while (posted - accepted < FrameSizes.FRAMES_IN_FLIGHT && !messages.isFull()) {
            long address = memory.address() + posted % FrameSizes.FRAMES_IN_FLIGHT * slotBytes;
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
        if (accepted - completed == FrameSizes.FRAMES_IN_FLIGHT) {
            return null;
        }
        if (!messages.testOldest()) {
            lookAtPeer();
            return null;
        }
        read(accepted % FrameSizes.FRAMES_IN_FLIGHT * slotBytes, messages.size(0));
        headerShown = true;
        return header;
    }

    /** Reads a message, of which nothing is believed before it is checked. */
    private void read(long at, int length) {
        if (length < MessageFormat.HEADER_BYTES || length > slotBytes) {
            throw connection.corrupt("the message of frame " + accepted + " has " + length + " bytes");
        }
        MessageFormat.read(memory, at, header);
        long number = MessageFormat.number(memory, at);
        long bytes = header.payloadBytes();
        int flags = MessageFormat.flags(memory, at);
        inline = (flags & MessageFormat.APART) == 0;
        onDevice = (flags & MessageFormat.ON_DEVICE) != 0;
        if (number != accepted || inline && onDevice) {
            throw connection.corrupt("a message says that it is of frame " + number + ", with flags " + flags
                    + ", and that of frame " + accepted + " was to come");
        }
        long with = inline ? bytes : 0;
        if (bytes < 0 || bytes > MessageFormat.MAX_PAYLOAD_BYTES || with > sizes.inlineBytes()
                || length != MessageFormat.HEADER_BYTES + with || !inline && bytes == 0) {
            throw connection.corrupt("the message of frame " + accepted + " has " + length
                    + " bytes and says that its payload has " + bytes + (inline ? ", all of them in it" : ""));
        }
    }

    @Override
    public void accept(@Nullable MemoryRegion region, long offset) {
        connection.checkAccept(headerShown);
        long bytes = header.payloadBytes();
        int slot = (int) (accepted % FrameSizes.FRAMES_IN_FLIGHT);
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
        accepted++;
        if (sizes.maxRecvs() == 1) {
            receives.post();
        } // or else the next call of progress posts one receive for all that are accepted until then
        complete();
    }

    @Override
    public boolean isOnDevice() {
        return headerShown && onDevice;
    }

    private void complete() {
        while (completed < accepted
                && lastPieces[(int) (completed % FrameSizes.FRAMES_IN_FLIGHT)] < receives.finishedPieces()) {
            completed++;
        }
    }

    @Override
    public int progress() {
        connection.checkOpen();
        long before = completed;
        int moved = receives.post() + receives.progress();
        complete();
        if (moved == 0 && completed == before) {
            lookAtPeer();
        }
        return moved + (int) (completed - before);
    }

    private void lookAtPeer() {
        connection.lookAtPeer(!headerShown, completed, progress);
    }

    /** How far this end has come, for messages. */
    private final Object progress = new Object() {
        @Override
        public String toString() {
            return "after " + completed + " whole frames were received"
                    + (completed == accepted ? "" : ", with " + (accepted - completed) + " under way");
        }
    };

    @Override
    public long framesCompleted() {
        return completed;
    }

    @Override
    public void close() {
        connection.close(() -> connection.sayGoodbye(completed));
    }

    private void release() {
        messages.close();
        payloads.close();
        slots.close();
        devices.close();
        arena.close();
    }

    @Override
    public String peer() {
        return connection.peer();
    }

    @Override
    public void blame(String lostPeer) {
        connection.blame(lostPeer);
    }

    @Override
    public String toString() {
        return connection.toString();
    }
}
