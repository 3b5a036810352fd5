package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.ffi.cudart.cudaHostFn_t;

/**
 * A Java function that a stream can {@linkplain CudaStream#call(HostFunction) call}, any number of times until it is
 * closed. All functions share one native entry point, which finds the function by its number. A call after closing does
 * nothing.
 */
public final class HostFunction implements AutoCloseable {

    /** Entry point for CUDA. It stays valid forever, because a graph may call it at any time. */
    static final MemorySegment STUB = cudaHostFn_t.allocate(HostFunction::dispatch, Arena.global());

    private static final Logger LOG = LogManager.getLogger(HostFunction.class);
    private static final ConcurrentMap<Long, HostFunction> BY_NUMBER = new ConcurrentHashMap<>();
    private static final AtomicLong NUMBERS = new AtomicLong();

    private final Runnable body;
    private final boolean once;
    private final long number = NUMBERS.incrementAndGet();
    private final MemorySegment token = MemorySegment.ofAddress(number);
    private volatile @Nullable Throwable failure;

    private HostFunction(Runnable body, boolean once) {
        this.body = body;
        this.once = once;
        BY_NUMBER.put(number, this);
    }

    /** {@return a function that can be called until it is closed, also from graphs} */
    public static HostFunction of(Runnable body) {
        return new HostFunction(body, false);
    }

    /** {@return a function that closes itself with its first call; not for streams that are being captured} */
    public static HostFunction once(Runnable body) {
        return new HostFunction(body, true);
    }

    /**
     * {@return the exception of the last call that failed, or null if every call returned normally; CUDA cannot be
     * notified, and the stream continued}
     */
    public @Nullable Throwable failure() {
        return failure;
    }

    /** Makes later calls do nothing. Does not wait for a running call. May be called twice. */
    @Override
    public void close() {
        BY_NUMBER.remove(number);
    }

    /** Returns the value that represents this function in a native call. */
    MemorySegment token() {
        if (!BY_NUMBER.containsKey(number)) {
            throw new IllegalStateException("host function " + number + " is closed");
        }
        return token;
    }

    private static void dispatch(MemorySegment token) {
        HostFunction function = BY_NUMBER.get(token.address());
        if (function != null) {
            function.run();
        }
    }

    /** Runs the function. It must not throw, because an exception here would end the process. */
    private void run() {
        if (once) {
            close();
        }
        try {
            body.run();
        } catch (Throwable thrown) {
            failure = thrown;
            LOG.error("host function {} failed on a CUDA stream; the stream went on", number, thrown);
        }
    }
}
