package org.millrace.bench.ring;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;
import static java.lang.foreign.MemoryLayout.PathElement.sequenceElement;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.ffi.device.ncclConnFifo;
import org.millrace.ffi.device.ncclRecvMem;

/** A connection's memory with small slots, for Java's descriptors and for the comparators. */
public final class RingMemory {

    /** Payload of a step: four lines of LL128, sixty of LL. */
    public static final int PAYLOAD_BYTES = 4 * (int) LL128Line.DATA_BYTES;
    /** Layout of the memory. */
    public static final ConnectionLayout LAYOUT = new ConnectionLayout(8 * 1024, 8 * 512, 8 * 512);

    static final long SIZE_0 = LAYOUT.recvMemOffset()
            + ncclRecvMem.layout().byteOffset(groupElement("connFifo"), sequenceElement(0), groupElement("size"));
    static final long ENTRY_BYTES = ncclConnFifo.sizeof();

    /** Indexes in the comparators' arguments, as in {@code ring.c}. */
    private static final int WINDOW = 11;
    private static final int PAYLOAD = 12;
    private static final int SAMPLES = 13;

    private final MemorySegment memory;
    private final SendMem sendMem;
    private final RecvMem recvMem;

    /**
     * Creates a view of memory. A connection that was never used contains only zeros.
     *
     * @param memory memory of at least the length of {@link #LAYOUT}, aligned to a page
     */
    public RingMemory(MemorySegment memory) {
        this.memory = memory.asSlice(0, LAYOUT.totalBytes());
        sendMem = LAYOUT.sendMem(this.memory);
        recvMem = LAYOUT.recvMem(this.memory);
    }

    MemorySegment memory() {
        return memory;
    }

    SendMem sendMem() {
        return sendMem;
    }

    RecvMem recvMem() {
        return recvMem;
    }

    /** {@return all of it, for the comparators} */
    public MemorySegment segment() {
        return memory;
    }

    /**
     * Returns arguments for the comparators.
     *
     * @param payloadBytes payload of a step
     * @param window       number of steps in flight, 1 to 8
     * @param samples      destination of times between steps, null if they are not recorded
     * @return memory of the global arena, with room for a payload
     */
    public static MemorySegment arguments(int payloadBytes, int window, MemorySegment samples) {
        long[] values = {LAYOUT.sendMemOffset() + SendMem.HEAD_OFFSET, LAYOUT.recvMemOffset() + RecvMem.TAIL_OFFSET,
                SIZE_0, ENTRY_BYTES, LAYOUT.bufferOffset(Protocol.SIMPLE), LAYOUT.bufferOffset(Protocol.LL),
                LAYOUT.bufferOffset(Protocol.LL128), LAYOUT.slotBytes(Protocol.SIMPLE), LAYOUT.slotBytes(Protocol.LL),
                LAYOUT.slotBytes(Protocol.LL128), payloadBytes, 0, 0, 0};
        values[WINDOW] = window;
        values[PAYLOAD] = Arena.global().allocate(PAYLOAD_BYTES, 64).address();
        values[SAMPLES] = samples == null ? 0 : samples.address();
        return Arena.global().allocateFrom(ValueLayout.JAVA_LONG, values);
    }
}
