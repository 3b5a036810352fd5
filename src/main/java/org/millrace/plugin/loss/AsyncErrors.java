package org.millrace.plugin.loss;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.CFunction;
import org.millrace.plugin.host.NativeMemory;

/**
 * Answers {@code ncclCommGetAsyncError} for communicators that have lost a peer. The shim intercepts the call
 * ({@code async_error.c}) and computes the answer in C. No Java code runs on the calling thread, because that thread
 * belongs to the program.
 */
public final class AsyncErrors {

    /**
     * Reaction of the program to the loss of a peer of its communicator. The ordinal of a constant is its number in the
     * shim.
     */
    public enum Reply {
        /** The program has neither asked for the error nor shrunk the communicator. */
        NOT_ASKED,
        /** The program called {@code ncclCommGetAsyncError} and received the error. */
        TOLD,
        /**
         * The program continues in another communicator, which {@code ncclCommShrink} created from the remaining ranks.
         */
        GIVEN_UP
    }

    /**
     * Libraries and executables of this process that call {@code ncclCommGetAsyncError}.
     *
     * @param count number of callers; 0 if none is known
     * @param names file names of the callers; if no caller is known, the reason why
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

    /** Reads the shim's functions from its {@code struct millraceDowncalls} and keeps them for {@link #current}. */
    public static void use(long shim) {
        current = new AsyncErrors(function(shim), function(shim + Long.BYTES));
    }

    private static CFunction function(long pointer) {
        return CFunction.at(MemorySegment.ofAddress(NativeMemory.getLong(pointer)));
    }

    public static @Nullable AsyncErrors current() {
        return current;
    }

    /** Finds the callers of {@code ncclCommGetAsyncError} in the NCCL library that is mapped at the given address. */
    public Askers askers(long library) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment names = arena.allocate(NAMES_BYTES);
            int count = (int) askers.call(library, 0, names.address(), NAMES_BYTES);
            return new Askers(count, names.getString(0));
        }
    }

    /** Makes the shim answer all callers, also in libraries that were loaded since the previous call of this method. */
    public void answer() {
        askers.call(0, 1);
    }

    public Reply lost(long communicator, boolean is) {
        return REPLIES[(int) lost.call(communicator, is ? 1 : 0)];
    }
}
