package org.millrace.nccl;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.atomic.AtomicBoolean;
import org.millrace.MillraceException;
import org.millrace.ffi.nccl.ncclDevCommRequirements_v28;
import org.millrace.ffi.nccl.ncclDevCommRequirements_v30;
import org.millrace.ffi.nccl.nccl_h;

/**
 * One rank's {@code ncclDevComm}, a parameter of kernels that use NCCL's device functions.
 * {@link NcclCommunicator#newDeviceCommunicator(Requirements)} creates it. A kernel takes the struct by value. A launch
 * therefore passes {@link #bytes()}:
 *
 * <pre>{@code
 * KernelParameters parameters = KernelParameters.allocate(arena, communicator.type(), ValueLayout.JAVA_LONG);
 * kernel.launch(shape, arguments.struct(0, communicator.bytes()).set(1, windowAddress), stream);
 * }</pre>
 *
 * <p>
 * In a group, or with a non-blocking communicator, NCCL writes the struct after the call has returned. The struct is
 * complete when the group has ended and {@link NcclCommunicator#awaitReady} has returned.
 */
public final class NcclDeviceCommunicator implements AutoCloseable {

    /**
     * Resources that kernels will use through NCCL's device functions.
     *
     * @param barriers number of barriers of all ranks; each barrier is for one thread block of each rank
     * @param signals  number of GIN signals of each context; their ids begin at 0
     * @param counters number of GIN counters of each context; their ids begin at 0
     * @param contexts number of GIN contexts. NCCL may create more or fewer, and NCCL 2.28 ignores this number.
     *                 {@link NcclDeviceCommunicator#contexts()} returns the actual number.
     */
    public record Requirements(int barriers, int signals, int counters, int contexts) {

        /** Checks that the numbers are valid. */
        public Requirements {
            if (barriers < 0 || signals < 0 || counters < 0 || contexts < 0) {
                throw new IllegalArgumentException(barriers + " barriers, " + signals + " signals, " + counters
                        + " counters, " + contexts + " contexts: a kernel needs 0 or more of each");
            }
        }

        /** Returns whether kernels need GIN even between ranks that share memory. */
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
        // NCCL may write the struct after the call has returned, so the struct's memory is never freed.
        MemorySegment struct = Arena.global().allocate(layout.type());
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment written = layout.write(requirements, compiledWith, arena);
            communicator.enter(NcclFunction.DEV_COMM_CREATE,
                    handle -> nccl_h.ncclDevCommCreate(handle, written, struct));
        }
        return new NcclDeviceCommunicator(communicator, layout, struct);
    }

    /**
     * Returns the struct that kernels take by value.
     *
     * @return read-only bytes of the struct; their number is the size of {@code ncclDevComm} in the headers of the
     *         kernels
     */
    public MemorySegment bytes() {
        if (closed.get()) {
            throw new IllegalStateException(
                    "a device communicator of " + communicator + " is closed and cannot be used");
        }
        return struct.asReadOnly();
    }

    /** {@return the type of a kernel parameter for the struct: a layout with the struct's size and alignment} */
    public MemoryLayout type() {
        return layout.type();
    }

    /** {@return this rank's number in the struct: 0 to {@code size() - 1}} */
    public int rank() {
        return bytes().get(ValueLayout.JAVA_INT, layout.rankOffset);
    }

    /** {@return the number of ranks in the struct: 1 or more} */
    public int size() {
        return bytes().get(ValueLayout.JAVA_INT, layout.rankOffset + Integer.BYTES);
    }

    /** {@return the number of GIN contexts that kernels can use; 0 without GIN} */
    public int contexts() {
        return layout.contexts(bytes());
    }

    /**
     * Checks that kernels use the same layout of {@code ncclDevComm} as this object.
     *
     * @param kernelBytes {@code sizeof(ncclDevComm)} in the compiled kernels
     * @throws MillraceException if the sizes differ, because the kernels would read wrong values
     */
    public void requireBytes(long kernelBytes) {
        if (kernelBytes != layout.bytes) {
            throw new MillraceException("the kernels take a device communicator of " + kernelBytes
                    + " bytes, and this one has " + layout.bytes + ": compile them with the headers of the loaded NCCL "
                    + communicator.library.versionText());
        }
    }

    /**
     * Releases the signals, counters and barriers. Kernels that use this object must have ended. Does nothing if the
     * communicator is already closed. May be called twice.
     */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            communicator.release(NcclFunction.DEV_COMM_DESTROY, handle -> nccl_h.ncclDevCommDestroy(handle, struct));
        }
    }

    /**
     * Layouts of {@code ncclDevCommRequirements} and {@code ncclDevComm} in the headers of NCCL's releases (source:
     * nccl_device/core.h and impl/comm__types.h at the tags of NCCL's releases).
     */
    enum DeviceLayout {
        V28(22807, 22899, ncclDevCommRequirements_v28.layout().byteSize(), nccl_h.MILLRACE_NCCL_DEV_COMM_BYTES_V22807(),
                0, 136, true),
        V29_2(22902, 22903, nccl_h.MILLRACE_NCCL_REQUIREMENTS_BYTES_V22902(),
                nccl_h.MILLRACE_NCCL_DEV_COMM_BYTES_V22807(), 0, 136, true),
        V29_7(22907, 22999, nccl_h.MILLRACE_NCCL_REQUIREMENTS_BYTES_V22907(),
                nccl_h.MILLRACE_NCCL_DEV_COMM_BYTES_V22907(), 0, 200, false),
        V30(23003, 23099, ncclDevCommRequirements_v30.layout().byteSize(), nccl_h.MILLRACE_NCCL_DEV_COMM_BYTES_V23003(),
                8, 200, false);

        final int first;
        private final int last;
        private final long requirementsBytes;
        final long bytes;
        /** Offset of {@code rank} in {@code ncclDevComm}, in bytes; {@code nRanks} follows directly. */
        final long rankOffset;
        private final long contextsOffset;
        private final boolean contextsInOneByte;

        DeviceLayout(int first, int last, long requirementsBytes, long bytes, long rankOffset, long contextsOffset,
                boolean contextsInOneByte) {
            this.first = first;
            this.last = last;
            this.requirementsBytes = requirementsBytes;
            this.bytes = bytes;
            this.rankOffset = rankOffset;
            this.contextsOffset = contextsOffset;
            this.contextsInOneByte = contextsInOneByte;
        }

        /**
         * Returns the layout of {@code ncclDevComm} that kernels use. Throws if the loaded NCCL does not write this
         * layout.
         *
         * @param compiledWith {@code NCCL_VERSION_CODE} of the kernels' headers
         * @param gin          whether the kernels use GIN
         */
        static DeviceLayout of(int compiledWith, int loaded, boolean gin) {
            DeviceLayout layout = null;
            for (DeviceLayout each : values()) {
                layout = compiledWith >= each.first && compiledWith <= each.last ? each : layout;
            }
            if (layout == null) {
                throw new MillraceException("the device communicator of NCCL " + NcclLibrary.versionText(compiledWith)
                        + " is not known here: compile the kernels with the headers of 2.28.7 to 2.28.9, 2.29.2, 2.29.3,"
                        + " 2.29.7 or 2.30.3 and later 2.30");
            }
            // NCCL 2.28 writes only its own layout. From NCCL 2.29 on, a release supports kernels with the headers of
            // the same release and of some older releases. The version in the requirements selects the layout. NCCL
            // 2.30.3 changed the descriptors that kernels post for GIN's proxy. Since then, NCCL supports only kernels
            // with the headers of 2.30.3 or later.
            boolean run = compiledWith <= loaded && (layout != V28 || loaded <= V28.last);
            if (!run || gin && compiledWith < V30.first && loaded >= V30.first) {
                throw new MillraceException(
                        "kernels compiled with the headers of NCCL " + NcclLibrary.versionText(compiledWith)
                                + " cannot " + (run ? "use GIN" : "run") + " with the loaded NCCL "
                                + NcclLibrary.versionText(loaded) + ": compile them with the headers of that release");
            }
            return layout;
        }

        /**
         * Writes NCCL's structure of the requirements. NCCL reads the structure only during the call that receives it.
         */
        MemorySegment write(NcclDeviceCommunicator.Requirements requirements, int compiledWith,
                SegmentAllocator allocator) {
            if (this == V28) {
                MemorySegment struct = ncclDevCommRequirements_v28.allocate(allocator);
                ncclDevCommRequirements_v28.barrierCount(struct, requirements.barriers());
                ncclDevCommRequirements_v28.ginForceEnable(struct, requirements.gin());
                ncclDevCommRequirements_v28.ginContextCount(struct, requirements.contexts());
                ncclDevCommRequirements_v28.ginSignalCount(struct, requirements.signals());
                ncclDevCommRequirements_v28.ginCounterCount(struct, requirements.counters());
                return struct;
            }
            MemorySegment struct = ncclDevCommRequirements_v30.allocate(allocator);
            ncclDevCommRequirements_v30.size(struct, requirementsBytes);
            ncclDevCommRequirements_v30.magic(struct, nccl_h.MILLRACE_NCCL_CONFIG_MAGIC());
            ncclDevCommRequirements_v30.version(struct, compiledWith);
            ncclDevCommRequirements_v30.barrierCount(struct, requirements.barriers());
            // Only the requirements of NCCL 2.29.2 use ginForceEnable. Later releases use ginConnectionType instead.
            ncclDevCommRequirements_v30.ginForceEnable(struct, this == V29_2 && requirements.gin());
            ncclDevCommRequirements_v30.ginContextCount(struct, requirements.contexts());
            ncclDevCommRequirements_v30.ginSignalCount(struct, requirements.signals());
            ncclDevCommRequirements_v30.ginCounterCount(struct, requirements.counters());
            // NCCL 2.30 treats a barrier as a use of GIN, because a barrier between hosts consists of GIN signals.
            boolean gin = requirements.gin() || requirements.barriers() > 0;
            ncclDevCommRequirements_v30.ginConnectionType(struct,
                    gin ? nccl_h.NCCL_GIN_CONNECTION_FULL() : nccl_h.NCCL_GIN_CONNECTION_NONE());
            ncclDevCommRequirements_v30.ginTrafficClass(struct, nccl_h.NCCL_CONFIG_UNDEF_INT());
            ncclDevCommRequirements_v30.ginStrongSignalsRequired(struct, true);
            ncclDevCommRequirements_v30.ginVaSignalsRequired(struct, true);
            return struct;
        }

        /** Returns a layout of the given size in bytes, aligned for pointers. */
        MemoryLayout type() {
            return MemoryLayout.sequenceLayout(bytes / Long.BYTES, ValueLayout.JAVA_LONG);
        }

        int contexts(MemorySegment struct) {
            return contextsInOneByte ? Byte.toUnsignedInt(struct.get(ValueLayout.JAVA_BYTE, contextsOffset))
                    : struct.get(ValueLayout.JAVA_INT, contextsOffset);
        }
    }
}
