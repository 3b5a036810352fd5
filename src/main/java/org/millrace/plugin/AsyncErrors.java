package org.millrace.plugin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.CFunction;

/**
 * {@code ncclCommGetAsyncError}, as the shim answers it for communicators that have lost a peer
 * ({@code async_error.c}): by calls in C alone, as it is a thread of the program's that asks.
 */
final class AsyncErrors {

    /** What the program has done since its communicator lost a peer; as the shim numbers it. */
    public enum Reply {
        /** Nothing that is known. */
        NOT_ASKED,
        /** It has asked, and was told. */
        TOLD,
        /** It goes on in another communicator, with those that are left. */
        GIVEN_UP
    }

    /**
     * Which parts of the program ask.
     *
     * @param count how many; 0 if nobody is known to
     * @param names of their files; why there are none, if there are none
     */
    public record Askers(int count, String names) {
    }

    private static final Reply[] REPLIES = Reply.values();
    private static final int NAMES_BYTES = 512;

    private static volatile @Nullable AsyncErrors current;

    private final CFunction askers;
    private final CFunction lost;

    private AsyncErrors(CFunction askers, CFunction lost) {
        this.askers = askers;
        this.lost = lost;
    }

    /** {@code struct millraceDowncalls}. */
    static void use(long shim) {
        current = new AsyncErrors(function(shim), function(shim + Long.BYTES));
    }

    private static CFunction function(long pointer) {
        return CFunction.at(MemorySegment.ofAddress(NativeMemory.getLong(pointer)));
    }

    public static @Nullable AsyncErrors current() {
        return current;
    }

    /** Looks who asks an NCCL, which begins there in memory. */
    public Askers askers(long library) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment names = arena.allocate(NAMES_BYTES);
            int count = (int) askers.call(library, 0, names.address(), NAMES_BYTES);
            return new Askers(count, names.getString(0));
        }
    }

    /** Has the shim answer every caller, what was loaded since the last time included. */
    public void answer() {
        askers.call(0, 1);
    }

    public Reply lost(long communicator, boolean is) {
        return REPLIES[(int) lost.call(communicator, is ? 1 : 0)];
    }
}
