package org.millrace.nccl;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.atomic.AtomicBoolean;
import org.millrace.MillraceException;
import org.millrace.ffi.nccl.nccl_h;

/**
 * What a kernel is given, by value, to use NCCL's device functions: the {@code ncclDevComm} of one rank, from
 * {@link NcclCommunicator#newDeviceCommunicator}. A kernel that takes one is launched with its {@link #bytes()}:
 *
 * <pre>{@code
 * KernelParameters parameters = KernelParameters.allocate(arena, communicator.type(), ValueLayout.JAVA_LONG);
 * kernel.launch(shape, arguments.struct(0, communicator.bytes()).set(1, windowAddress), stream);
 * }</pre>
 *
 * <p>
 * In a group, or with a communicator that does not block, it is filled when the group has ended and
 * {@link NcclCommunicator#awaitReady} has returned.
 */
public final class NcclDeviceCommunicator implements AutoCloseable {

    /**
     * What kernels will use of a communicator through NCCL's device functions.
     *
     * @param barriers barriers of all ranks, each for one thread block
     * @param signals  GIN signals of a context, with ids from 0
     * @param counters GIN counters of a context, with ids from 0
     * @param contexts GIN contexts; NCCL may make more or fewer, and 2.28 decides alone:
     *                 {@link NcclDeviceCommunicator#contexts()} says how many there are
     */
    public record Requirements(int barriers, int signals, int counters, int contexts) {

        /** Checks the numbers. */
        public Requirements {
            if (barriers < 0 || signals < 0 || counters < 0 || contexts < 0) {
                throw new IllegalArgumentException(barriers + " barriers, " + signals + " signals, " + counters
                        + " counters, " + contexts + " contexts: a kernel needs 0 or more of each");
            }
        }

        /** Whether GIN must be there, even between ranks that share memory. */
        boolean gin() {
            return signals > 0 || counters > 0 || contexts > 0;
        }
    }

    private final NcclCommunicator communicator;
    private final DeviceLayout layout;
    private final MemorySegment struct;
    private final AtomicBoolean closed = new AtomicBoolean();

    private NcclDeviceCommunicator(NcclCommunicator communicator, DeviceLayout layout, MemorySegment struct) {
        this.communicator = communicator;
        this.layout = layout;
        this.struct = struct;
    }

    static NcclDeviceCommunicator of(NcclCommunicator communicator, Requirements requirements, int compiledWith) {
        communicator.library.require(NcclFunction.DEV_COMM_CREATE);
        DeviceLayout layout = DeviceLayout.of(compiledWith, communicator.library.version(), requirements.gin());
        // Like a window, it may be written after the call has returned.
        MemorySegment struct = Arena.global().allocate(layout.type());
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment written = layout.write(requirements, compiledWith, arena);
            communicator.enter(NcclFunction.DEV_COMM_CREATE,
                    handle -> nccl_h.ncclDevCommCreate(handle, written, struct));
        }
        return new NcclDeviceCommunicator(communicator, layout, struct);
    }

    /**
     * The struct that kernels take by value.
     *
     * @return its bytes, as many as in the headers of the release for which it was made; read-only
     */
    public MemorySegment bytes() {
        if (closed.get()) {
            throw new IllegalStateException(
                    "a device communicator of " + communicator + " is closed and cannot be used");
        }
        return struct.asReadOnly();
    }

    /** {@return the type of a kernel's parameter that takes it: a layout of its size and alignment} */
    public MemoryLayout type() {
        return layout.type();
    }

    /** {@return this rank, as kernels see it: 0 to {@code size() - 1}} */
    public int rank() {
        return bytes().get(ValueLayout.JAVA_INT, layout.rankOffset);
    }

    /** {@return the number of ranks, as kernels see it: 1 or more} */
    public int size() {
        return bytes().get(ValueLayout.JAVA_INT, layout.rankOffset + Integer.BYTES);
    }

    /** {@return how many GIN contexts kernels can use; 0 if there is no GIN} */
    public int contexts() {
        return layout.contexts(bytes());
    }

    /**
     * Checks that kernels lay it out as this does.
     *
     * @param kernelBytes {@code sizeof(ncclDevComm)} where the kernels were compiled
     * @throws MillraceException if they do not: a launch would hand them garbage
     */
    public void requireBytes(long kernelBytes) {
        if (kernelBytes != layout.bytes) {
            throw new MillraceException("the kernels take a device communicator of " + kernelBytes
                    + " bytes, and this one has " + layout.bytes + ": compile them with the headers of the loaded NCCL "
                    + communicator.library.versionText());
        }
    }

    /**
     * Gives its signals, counters and barriers back; kernels that use it must have ended. Nothing to do if the
     * communicator is closed already. Closing twice is allowed.
     */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            communicator.release(NcclFunction.DEV_COMM_DESTROY, handle -> nccl_h.ncclDevCommDestroy(handle, struct));
        }
    }
}
