package org.millrace.net.plugin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import org.millrace.net.connection.ConnectionState.ConnectionEnd;
import org.millrace.net.connection.InFlight;

/**
 * Base class of the sender and the receiver of a connection. An end has one communicator for messages with headers, and
 * another communicator for payloads that are sent separately. An end also has the frames in flight, and the memory for
 * the messages with headers.
 */
abstract class PluginEnd<C extends PluginComm> extends ConnectionEnd {

    /** Creates the {@link PluginComm} for one communicator of the plugin at this end. */
    interface CommMaker<C> {
        C make(PluginConnection connection, long communicator, Arena arena);
    }

    final PluginConnection connection;
    final FrameSizes sizes;
    private final Arena arena = Arena.ofShared();
    final C messages;
    final C payloads;
    /** Memory with one slot for the message of each frame in flight. */
    final PluginRegion slots;
    final MemorySegment memory;
    final int slotBytes;
    final PayloadQueue queue;
    final DeviceMemories devices;
    /** Frames that the owner has offered or accepted, and that are not complete. */
    final InFlight window = new InFlight(FrameSizes.FRAMES_IN_FLIGHT);
    /**
     * For each slot, the ordinal of the last piece of the frame's payload; -1 if the frame has no payload, or if the
     * payload is in the message with the header.
     */
    final long[] lastPieces = new long[FrameSizes.FRAMES_IN_FLIGHT];

    PluginEnd(PluginConnection connection, FrameSizes sizes, CommMaker<C> maker, long messages, long payloads,
            BitSet regions) {
        super(connection);
        this.connection = connection;
        this.sizes = sizes;
        slotBytes = sizes.messageBytes();
        slots = PluginRegion.of(connection.network(),
                arena.allocate((long) FrameSizes.FRAMES_IN_FLIGHT * slotBytes, 4096), regions);
        memory = slots.view();
        this.messages = maker.make(connection, messages, arena);
        this.payloads = maker.make(connection, payloads, arena);
        queue = new PayloadQueue(FrameSizes.FRAMES_IN_FLIGHT, sizes.pieceBytes());
        devices = new DeviceMemories(connection, regions);
        connection.onRelease(this::release);
    }

    private void release() {
        messages.close();
        payloads.close();
        slots.close();
        devices.close();
        arena.close();
    }

    /** Returns the offset of a frame's slot in the memory. */
    final long message(long frame) {
        return (long) window.slot(frame) * slotBytes;
    }

    /** Describes this end's progress, for messages. */
    final String progress(String verb) {
        return "after " + window.done() + " whole frames were " + verb
                + (window.isEmpty() ? "" : ", with " + (window.begun() - window.done()) + " under way");
    }

    public final long framesCompleted() {
        return window.done();
    }
}
