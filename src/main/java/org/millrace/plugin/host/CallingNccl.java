package org.millrace.plugin.host;

import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.KernelLayout;
import org.millrace.nccl.NcclLibrary;

/**
 * The NCCL library that calls the plugin. A process can contain several NCCL libraries.
 *
 * @param version result of the library's {@code ncclGetVersion}; 0 if this function cannot be found, for instance
 *                because NCCL was linked statically
 * @param rccl    path of the library if its dynamic section identifies it as RCCL; null otherwise
 */
public record CallingNccl(int version, @Nullable String rccl) {

    public static final CallingNccl UNTOLD = new CallingNccl(0);

    public CallingNccl(int version) {
        this(version, null);
    }

    /**
     * {@return a clause for messages: the reason why the layout of this NCCL's memory is unknown; null if it is known}
     */
    public @Nullable String obstacle() {
        return rccl != null ? ": the layout of its memory differs from NCCL's, and this Millrace does not know it"
                : KernelLayout.ofRelease(version) != null ? null
                        : ", which is newer than this Millrace: how its memory is laid out is not known";
    }

    /**
     * Returns whether this NCCL passes the address of a device handle to {@code connect} and {@code accept}. On hosts
     * with AMD's AINIC cards, RCCL passes the address of a structure of four bytes instead.
     */
    public boolean takesDeviceHandles() {
        return rccl == null;
    }

    /** Returns the layouts that this NCCL's memory may have. LL128 lines have one length in all of them. */
    public List<KernelLayout> layouts() {
        KernelLayout known = known();
        return known != null && version == 0 ? List.of(KernelLayout.V28, KernelLayout.V31)
                : known == null ? List.of() : List.of(known);
    }

    private @Nullable KernelLayout known() {
        return rccl == null ? KernelLayout.ofRelease(version) : null;
    }

    /** Returns a description for the log. It includes the memory layout, if the version alone determines the layout. */
    public String describe() {
        @Nullable
        KernelLayout known = known();
        return this + (known != null && version == 0 ? ", whose memory tells how connFifo is laid out"
                : known == null ? "" : ", " + known);
    }

    @Override
    public String toString() {
        String name = rccl == null ? "NCCL" : "RCCL";
        return (version == 0 ? "an " + name + " of unknown version" : name + " " + NcclLibrary.versionText(version))
                + (rccl == null ? "" : " (" + rccl + ")");
    }
}
