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
 * A Java function that a stream can {@linkplain CudaStream#call(HostFunction) call} any number of times until the
 * function is closed. All functions share one native entry point. CUDA passes the number of the function to this entry
 * point. A call of a closed function does nothing.
 */
public final class HostFunction implements AutoCloseable {

    /** Native entry point of all functions. It is never freed, because a graph may call it at any time. */
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

    /** {@return a function that streams and graphs can call many times until it is closed} */
    public static HostFunction of(Runnable body) {
        return new HostFunction(body, false);
    }

    /**
     * {@return a function that closes itself at its first call} The function must not be enqueued in a stream that is
     * being captured.
     */
    public static HostFunction once(Runnable body) {
        return new HostFunction(body, true);
    }

    /**
     * {@return the exception of the last call that threw an exception, or null if no call did} CUDA does not learn of
     * the exception, and the stream continues.
     */
    public @Nullable Throwable failure() {
        return failure;
    }

    /** Closes the function: later calls do nothing. Does not wait for a running call. May be called twice. */
    @Override
    public void close() {
        BY_NUMBER.remove(number);
    }

    /** Returns the number of this function as the argument that CUDA passes to {@link #STUB}. */
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

    /**
     * Runs the function. Catches every exception, because an exception in a call from native code would end the
     * process.
     */
    private void run() {
        if (once) {
            close();
        }
        try {
            body.run();
        } catch (Throwable thrown) {
            failure = thrown;
            LOG.error("host function {} failed on a CUDA stream; the stream continued", number, thrown);
        }
    }
}
