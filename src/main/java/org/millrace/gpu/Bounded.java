package org.millrace.gpu;

import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.millrace.MillraceException;

/**
 * Waits, with a deadline, for a call of libnccl that waits for other ranks without one. NCCL has communicators whose
 * calls do not wait, but starts a thread for each of their operations.
 */
final class Bounded {

    private static final long LOOK_MILLIS = 20;

    private Bounded() {}

    /**
     * Makes a call on a thread of its own. If it is given up, that thread stays behind until the call returns, if it
     * ever does: NCCL has no way to take it back.
     *
     * @param what     the call, for messages
     * @param deadline how long it may take
     * @param look     called again and again meanwhile; ends the wait by throwing
     */
    static <T> T call(String what, Duration deadline, Runnable look, Callable<T> call) {
        FutureTask<T> task = new FutureTask<>(call);
        Thread.ofPlatform().daemon().name(what).start(task);
        long start = System.nanoTime();
        while (true) {
            try {
                return task.get(LOOK_MILLIS, TimeUnit.MILLISECONDS);
            } catch (TimeoutException notYet) {
                look.run();
                if (System.nanoTime() - start > deadline.toNanos()) {
                    throw new MillraceException(what + " did not return within " + deadline.toMillis()
                            + " ms: a rank does not make the same call,"
                            + " or cannot be reached by the interface that NCCL chose"
                            + " (NCCL_SOCKET_IFNAME picks another; NCCL_DEBUG=INFO shows what NCCL does)");
                }
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                throw new MillraceException(what + ": interrupted while waiting for it", interrupted);
            } catch (ExecutionException thrown) {
                throw rethrow(what, thrown.getCause());
            }
        }
    }

    private static RuntimeException rethrow(String what, Throwable cause) {
        return cause instanceof RuntimeException unchecked ? unchecked
                : new MillraceException(what + " failed: " + cause, cause);
    }
}
