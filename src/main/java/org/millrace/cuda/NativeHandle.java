package org.millrace.cuda;

import java.lang.foreign.AddressLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.function.Consumer;
import java.util.function.ToIntFunction;
import org.jspecify.annotations.Nullable;
import org.millrace.agent.IdleProfile;
import org.millrace.agent.IdleStrategy;
import org.millrace.foreign.Words;

/**
 * The address of an object that a native library owns. The object is released exactly once, and never while a call uses
 * it.
 *
 * <p>
 * Each native call is enclosed by {@link #enter()} and {@link #exit()}. {@link #close()} forbids further calls. If no
 * call is in progress, {@code close} releases the object immediately. Otherwise the last call in progress releases the
 * object when it ends. Closing therefore never blocks, and a call on a closed object causes an exception instead of a
 * crash. {@code enter} and {@code exit} cost one atomic instruction each and allocate nothing.
 */
public final class NativeHandle {

    private static final AddressLayout POINTER = ValueLayout.ADDRESS;
    private static final VarHandle SLOT = POINTER.varHandle();
    private static final VarHandle STATE = Words.field(MethodHandles.lookup(), "state", int.class);
    private static final VarHandle RELEASED = Words.field(MethodHandles.lookup(), "released", boolean.class);

    /** Sign bit of {@link #state}: the handle is closed. The other bits contain the number of calls in progress. */
    private static final int CLOSED = Integer.MIN_VALUE;

    private final String name;
    private final Consumer<MemorySegment> release;
    private final @Nullable MemorySegment slot;
    private volatile @Nullable MemorySegment address;
    private volatile int state;
    private volatile boolean released;

    /**
     * Creates a handle with a known address.
     *
     * @param name    description of the object in messages, for instance {@code "CUDA event"}
     * @param release function that releases the object; called once, and must not throw
     */
    public NativeHandle(String name, MemorySegment address, Consumer<MemorySegment> release) {
        this(name, address, null, release);
    }

    private NativeHandle(String name, @Nullable MemorySegment address, @Nullable MemorySegment slot,
            Consumer<MemorySegment> release) {
        this.name = name;
        this.address = address;
        this.slot = slot;
        this.release = release;
    }

    /**
     * {@return a handle for an object that the library creates now or later} Calls can enter the handle after the
     * library has written the object's address.
     *
     * @param slot    location where the library stores the address. The location contains null before this store. It
     *                must stay valid as long as the library may write to it.
     * @param release function that releases the object; called at most once, and only if the library has written an
     *                address
     */
    public static NativeHandle pending(String name, MemorySegment slot, Consumer<MemorySegment> release) {
        return new NativeHandle(name, null, slot, release);
    }

    /**
     * Begins a call and returns the object's address. Each successful {@code enter} must be followed by
     * {@link #exit()}.
     *
     * @throws IllegalStateException if the handle is closed, or if the library has not created the object yet
     */
    public MemorySegment enter() {
        MemorySegment known = resolve();
        if (known == null) {
            throw new IllegalStateException(name
                    + " is not ready: the library is still making it (wait for the communicator that makes it, or end"
                    + " the group)");
        }
        int seen;
        do {
            seen = state;
            if (seen < 0) {
                throw new IllegalStateException(name + " is closed");
            }
        } while (!STATE.compareAndSet(this, seen, seen + 1));
        return known;
    }

    /** Ends a call. If the handle is closed and no other call is in progress, releases the object. */
    public void exit() {
        // After CLOSED is set, the number of calls only decreases. Therefore exactly one call of exit() or close()
        // finds that the number is zero.
        if ((int) STATE.getAndAdd(this, -1) - 1 == CLOSED) {
            releaseOnce();
        }
    }

    /** Makes a native call between {@link #enter()} and {@link #exit()}. Returns the result of the call. */
    public int call(ToIntFunction<MemorySegment> call) {
        MemorySegment entered = enter();
        try {
            return call.applyAsInt(entered);
        } finally {
            exit();
        }
    }

    /**
     * Returns the address that {@link #enter()} returned. The address is valid only between {@code enter} and
     * {@link #exit()}. Returns null if no {@code enter} has read an address yet.
     */
    public @Nullable MemorySegment address() {
        return address;
    }

    /**
     * Forbids further calls. The object is released when no call is in progress. Returns whether this call was the
     * first to close the handle.
     */
    public boolean close() {
        int seen = (int) STATE.getAndBitwiseOr(this, CLOSED);
        if (seen == 0) {
            releaseOnce();
        }
        return seen >= 0;
    }

    /**
     * Forbids further calls, and waits for the calls in progress until a deadline. Then releases the object, even if a
     * call is stuck. Used if the release itself ends stuck calls, as an abort does.
     *
     * @param nanos maximum time to wait, in nanoseconds
     */
    public void closeWithin(long nanos) {
        close();
        long start = System.nanoTime();
        IdleStrategy idle = IdleProfile.ROOM.newStrategy();
        while (state != CLOSED && System.nanoTime() - start < nanos) {
            idle.idle(0);
        }
        releaseOnce();
    }

    /** Returns whether the handle was closed by {@link #close()} or {@link #closeWithin}. */
    public boolean isClosed() {
        return state < 0;
    }

    /**
     * Returns whether the library has created the object. Returns false only for a {@linkplain #pending pending} handle
     * that has no address yet.
     */
    public boolean isMade() {
        return resolve() != null;
    }

    private @Nullable MemorySegment resolve() {
        MemorySegment known = address;
        if (known == null) {
            // This acquire pairs with the library's store of the address, which publishes the object.
            MemorySegment written = (MemorySegment) SLOT.getAcquire(slot, 0L);
            if (written.address() != 0) {
                known = written;
                address = written;
            }
        }
        return known;
    }

    private void releaseOnce() {
        if (RELEASED.compareAndSet(this, false, true)) {
            MemorySegment known = resolve();
            if (known != null) {
                release.accept(known);
            }
        }
    }

    @Override
    public String toString() {
        MemorySegment known = address;
        return name + (known == null ? "" : " 0x" + Long.toHexString(known.address()))
                + (isClosed() ? " (closed)" : "");
    }
}
