package org.millrace.library;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.CFunction;

/**
 * The C library's {@code dlopen} and related functions.
 * {@link java.lang.foreign.SymbolLookup#libraryLookup(String, Arena)} also opens libraries. But it reports neither the
 * reason for a failure nor the file that a name resolved to, and it cannot keep a library open.
 */
public final class DynamicLoader {

    /**
     * Flag that resolves every symbol immediately. A missing dependency then causes an error in {@link #open}, and not
     * a crash later.
     */
    private static final int RTLD_NOW = 2;

    private static final CFunction DLOPEN = CFunction.named("dlopen");
    private static final CFunction DLSYM = CFunction.named("dlsym");
    private static final CFunction DLERROR = CFunction.named("dlerror");
    private static final CFunction DLADDR = CFunction.named("dladdr");
    private static final CFunction DLCLOSE = CFunction.named("dlclose");

    /** Layout of {@code Dl_info}: file name, base address, symbol name, symbol address. */
    private static final MemoryLayout DL_INFO = MemoryLayout.sequenceLayout(4, ValueLayout.JAVA_LONG);

    private DynamicLoader() {}

    /**
     * Result of {@link #open}. Exactly one of the two values is null.
     *
     * @param handle handle of the library that was opened
     * @param error  reason for the failure
     */
    public record Opened(@Nullable MemorySegment handle, @Nullable String error) {
    }

    public static Opened open(String file) {
        try (Arena arena = Arena.ofConfined()) {
            long handle = DLOPEN.call(arena.allocateFrom(file).address(), RTLD_NOW);
            if (handle != 0) {
                return new Opened(MemorySegment.ofAddress(handle), null);
            }
            String error = NativeLibrary.text(MemorySegment.ofAddress(DLERROR.call()));
            return new Opened(null, error == null ? "dlopen failed and reported no reason" : error);
        }
    }

    /** Returns the address of a symbol; null if the library does not have it. */
    public static @Nullable MemorySegment find(MemorySegment handle, String symbol) {
        try (Arena arena = Arena.ofConfined()) {
            long address = DLSYM.call(handle.address(), arena.allocateFrom(symbol).address());
            return address == 0 ? null : MemorySegment.ofAddress(address);
        }
    }

    /** Returns the name of the library file that is loaded at an address; null if the address is in no library. */
    static @Nullable String fileOf(MemorySegment address) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment info = arena.allocate(DL_INFO);
            int found = (int) DLADDR.call(address.address(), info.address());
            return found == 0 ? null : NativeLibrary.text(MemorySegment.ofAddress(info.get(ValueLayout.JAVA_LONG, 0)));
        }
    }

    static void close(MemorySegment handle) {
        DLCLOSE.call(handle.address());
    }
}
