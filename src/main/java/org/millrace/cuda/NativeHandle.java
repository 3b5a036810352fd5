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

/**
 * The address of an object that a native library owns. It is released exactly once and never while a call uses it.
 *
 * <p>
 * A call is enclosed by {@link #enter()} and {@link #exit()}. {@link #close()} admits no further call and releases the
 * object when the last call has left. If no call is in progress, it releases the object at once, otherwise the thread
 * of the last call does. So closing never blocks, and a call on a closed object is an exception instead of a crash.
 * Entering and leaving cost one atomic instruction each and allocate nothing.
 */
public final class NativeHandle {

    private static final AddressLayout POINTER = ValueLayout.ADDRESS;
    private static final VarHandle SLOT = POINTER.varHandle();
    private static final VarHandle STATE;
    private static final VarHandle RELEASED;

    /** The sign bit of {@link #state}. The other bits count the calls in progress. */
    private static final int CLOSED = Integer.MIN_VALUE;

    static {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            STATE = lookup.findVarHandle(NativeHandle.class, "state", int.class);
            RELEASED = lookup.findVarHandle(NativeHandle.class, "released", boolean.class);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }

    private final String name;
    private final Consumer<MemorySegment> release;
    private final @Nullable MemorySegment slot;
    private volatile @Nullable MemorySegment address;
    private volatile int state;
    private volatile boolean released;

    /**
     * Creates a handle with a known address.
     *
     * @param name    description of the object for messages: {@code "CUDA event"}
     * @param release releases the object; called once, and must not throw
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
     * {@return a handle for an address that the library may still have to write; it can be entered as soon as the
     * address has been written}
     *
     * @param slot    location where the library stores the address; null address until then; must stay valid as long as
     *                the library may write to it
     * @param release releases the object, if an address has been written by then
     */
    public static NativeHandle pending(String name, MemorySegment slot, Consumer<MemorySegment> release) {
        return new NativeHandle(name, null, slot, release);
    }

    /**
     * Begins a call. Each successful one must be followed by {@link #exit()}.
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

    /** Ends a call. */
    public void exit() {
        // After CLOSED is set the count only falls, so exactly one exit (or close) sees it reach zero.
        if ((int) STATE.getAndAdd(this, -1) - 1 == CLOSED) {
            releaseOnce();
        }
    }

    /** Makes a call between {@link #enter()} and {@link #exit()}. Returns the call's result. */
    public int call(ToIntFunction<MemorySegment> call) {
        MemorySegment entered = enter();
        try {
            return call.applyAsInt(entered);
        } finally {
            exit();
        }
    }

    /**
     * Returns the same address as {@link #enter()}, valid only between entering and leaving. Null if the library has
     * not created the object yet.
     */
    public @Nullable MemorySegment address() {
        return address;
    }

    /**
     * Admits no further call. Returns whether this call was the first to close the handle. The object is released when
     * the last call has left.
     */
    public boolean close() {
        int seen = (int) STATE.getAndBitwiseOr(this, CLOSED);
        if (seen == 0) {
            releaseOnce();
        }
        return seen >= 0;
    }

    /**
     * Admits no further call, waits for the calls in progress, and then releases the object even if one of them is
     * stuck. For operations that exist to free stuck calls.
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

    /** Returns whether {@link #close()} was called. */
    public boolean isClosed() {
        return state < 0;
    }

    /**
     * Returns whether the library has created the object. False only for a {@linkplain #pending pending} handle without
     * an address so far.
     */
    public boolean isMade() {
        return resolve() != null;
    }

    private @Nullable MemorySegment resolve() {
        MemorySegment known = address;
        if (known == null) {
            // Pairs with the library's store that publishes the object.
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
