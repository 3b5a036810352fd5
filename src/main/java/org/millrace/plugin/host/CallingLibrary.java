package org.millrace.plugin.host;

import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.KernelLayout;
import org.millrace.nccl.NcclLibrary;

/**
 * The library that calls the plugin: NCCL, or a library with NCCL's plugin interface. A process can contain several of
 * them.
 *
 * @param vendor  vendor by the library's name, its use of HIP and its functions; {@link Vendor#NCCL} if none of them is
 *                evidence of another vendor
 * @param version result of the library's {@code ncclGetVersion}; 0 if this function cannot be found, for instance
 *                because NCCL was linked statically
 * @param path    file of the library, or of the program that contains it; null if it is unknown
 */
public record CallingLibrary(Vendor vendor, int version, @Nullable String path) {

    /**
     * The vendor of a library. The constants have the same order as {@code millraceVendor} in
     * {@code src/main/c/shim.h}.
     */
    public enum Vendor {
        /** NVIDIA's library, or a caller without evidence of another vendor. */
        NCCL,
        /** AMD's library. */
        RCCL,
        /** Meta's extension of NCCL. */
        NCCLX,
        /** A library with a name that contains {@code ccl.so} and is neither NCCL's nor RCCL's name. */
        UNKNOWN
    }

    /** A caller that reports neither vendor nor version. */
    public static final CallingLibrary UNTOLD = nccl(0);

    /** Returns an NCCL library of the given version, with an unknown path. */
    public static CallingLibrary nccl(int version) {
        return new CallingLibrary(Vendor.NCCL, version, null);
    }

    /**
     * {@return a clause for messages: the reason why the layout of this library's memory is unknown; null if the layout
     * is known}
     */
    public @Nullable String obstacle() {
        return known() != null ? null : switch (vendor) {
            case NCCL, NCCLX -> ", which is newer than this Millrace: how its memory is laid out is not known";
            case RCCL -> ": how its memory is laid out is not known";
            case UNKNOWN -> ": it is neither NCCL nor RCCL, and how its memory is laid out is not known";
        };
    }

    /** {@return whether this is RCCL, AMD's library} */
    public boolean isRccl() {
        return vendor == Vendor.RCCL;
    }

    /** Returns the layouts that this library's memory may have. All of them have the same length of LL128 lines. */
    public List<KernelLayout> layouts() {
        KernelLayout known = known();
        return known == null ? List.of() : isUntold() ? List.of(KernelLayout.V28, KernelLayout.V31) : List.of(known);
    }

    private @Nullable KernelLayout known() {
        return switch (vendor) {
            case NCCL, NCCLX -> KernelLayout.ofRelease(version);
            case RCCL -> KernelLayout.ofRccl(version);
            case UNKNOWN -> null;
        };
    }

    /**
     * Returns whether the layout must be determined from NCCL's memory, because the library's version is unknown.
     */
    private boolean isUntold() {
        return version == 0 && known() != null;
    }

    /** Returns a description for the log. It includes the memory layout, if the version alone determines the layout. */
    public String describe() {
        KernelLayout known = known();
        return this
                + (isUntold() ? ", whose memory tells how connFifo is laid out" : known == null ? "" : ", " + known);
    }

    @Override
    public String toString() {
        String name = vendor == Vendor.UNKNOWN ? "unknown library" : vendor.name();
        String text = version != 0 ? name + " " + NcclLibrary.versionText(version)
                : (vendor == Vendor.UNKNOWN ? name : "an " + name) + " of unknown version";
        return text + (path == null || vendor == Vendor.NCCL && known() != null ? "" : " (" + path + ")");
    }
}
