package org.millrace.plugin;

import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.FifoLayout;
import org.millrace.nccl.NcclLibrary;

/**
 * The NCCL that calls, one of perhaps several in this process.
 *
 * @param version as its {@code ncclGetVersion} says it; 0 if it has none that can be found, as where NCCL was linked
 *                statically
 */
record CallingNccl(int version) {

    static final CallingNccl UNTOLD = new CallingNccl(0);

    /** Whether its memory is laid out in a way that is not known: it is later than what is. */
    boolean isUnknown() {
        return FifoLayout.ofRelease(version) == null;
    }

    List<FifoLayout> layouts() {
        FifoLayout known = FifoLayout.ofRelease(version);
        return version == 0 ? List.of(FifoLayout.values()) : known == null ? List.of() : List.of(known);
    }

    /** For the log: with its layout, as far as that is known before there is memory. */
    String describe() {
        @Nullable
        FifoLayout known = FifoLayout.ofRelease(version);
        return this
                + (version == 0 ? ", whose memory tells how connFifo is laid out" : known == null ? "" : ", " + known);
    }

    @Override
    public String toString() {
        return version == 0 ? "an NCCL that does not tell its version" : "NCCL " + NcclLibrary.versionText(version);
    }
}
