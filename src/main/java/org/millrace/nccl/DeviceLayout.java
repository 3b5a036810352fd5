package org.millrace.nccl;

import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.lang.foreign.ValueLayout;
import org.millrace.MillraceException;
import org.millrace.ffi.nccl.ncclDevCommRequirements_v28;
import org.millrace.ffi.nccl.ncclDevCommRequirements_v30;
import org.millrace.ffi.nccl.nccl_h;

/**
 * How a release's headers lay out {@code ncclDevCommRequirements} and {@code ncclDevComm} (facts: nccl_device/core.h
 * and impl/comm__types.h of NCCL's tags).
 */
enum DeviceLayout {
    V28(22807, 22899, ncclDevCommRequirements_v28.layout().byteSize(), nccl_h.MILLRACE_NCCL_DEV_COMM_BYTES_V22807(), 0,
            136, true),
    V29_2(22902, 22903, nccl_h.MILLRACE_NCCL_REQUIREMENTS_BYTES_V22902(), nccl_h.MILLRACE_NCCL_DEV_COMM_BYTES_V22807(),
            0, 136, true),
    V29_7(22907, 22999, nccl_h.MILLRACE_NCCL_REQUIREMENTS_BYTES_V22907(), nccl_h.MILLRACE_NCCL_DEV_COMM_BYTES_V22907(),
            0, 200, false),
    V30(23003, 23099, ncclDevCommRequirements_v30.layout().byteSize(), nccl_h.MILLRACE_NCCL_DEV_COMM_BYTES_V23003(), 8,
            200, false);

    final int first;
    private final int last;
    private final long requirementsBytes;
    final long bytes;
    /** Of {@code rank}, which {@code nRanks} follows. */
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
     * The layout of kernels.
     *
     * @param compiledWith {@code NCCL_VERSION_CODE} of their headers
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
        // 2.28 writes its own layout only; from 2.29 on a release serves headers that are not newer than itself and
        // know the requirements' version.
        // 2.30.3 changed the descriptors that kernels post for GIN's proxy, and serves those of its own and later
        // headers only.
        boolean run = compiledWith <= loaded && (layout != V28 || loaded <= V28.last);
        if (!run || gin && compiledWith < V30.first && loaded >= V30.first) {
            throw new MillraceException(
                    "kernels compiled with the headers of NCCL " + NcclLibrary.versionText(compiledWith) + " cannot "
                            + (run ? "use GIN" : "run") + " with the loaded NCCL " + NcclLibrary.versionText(loaded)
                            + ": compile them with the headers of that release");
        }
        return layout;
    }

    /** Writes the requirements, which NCCL reads during the call. */
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
        // deprecated where there is a connection type instead
        ncclDevCommRequirements_v30.ginForceEnable(struct, this == V29_2 && requirements.gin());
        ncclDevCommRequirements_v30.ginContextCount(struct, requirements.contexts());
        ncclDevCommRequirements_v30.ginSignalCount(struct, requirements.signals());
        ncclDevCommRequirements_v30.ginCounterCount(struct, requirements.counters());
        // 2.30 counts a barrier as a use of GIN: its barrier reaches ranks of other hosts by signals
        boolean gin = requirements.gin() || requirements.barriers() > 0;
        ncclDevCommRequirements_v30.ginConnectionType(struct,
                gin ? nccl_h.NCCL_GIN_CONNECTION_FULL() : nccl_h.NCCL_GIN_CONNECTION_NONE());
        ncclDevCommRequirements_v30.ginTrafficClass(struct, nccl_h.NCCL_CONFIG_UNDEF_INT());
        ncclDevCommRequirements_v30.ginStrongSignalsRequired(struct, true);
        ncclDevCommRequirements_v30.ginVaSignalsRequired(struct, true);
        return struct;
    }

    /** So many bytes, with the alignment of the pointers among them. */
    MemoryLayout type() {
        return MemoryLayout.sequenceLayout(bytes / Long.BYTES, ValueLayout.JAVA_LONG);
    }

    int contexts(MemorySegment struct) {
        return contextsInOneByte ? Byte.toUnsignedInt(struct.get(ValueLayout.JAVA_BYTE, contextsOffset))
                : struct.get(ValueLayout.JAVA_INT, contextsOffset);
    }
}
