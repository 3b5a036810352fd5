package org.millrace.bench.gpu;

import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.bench.measure.Loop;

/**
 * The proxy's answer to a GPU that posts steps. It waits for {@code tail} and answers on {@code head}. {@code gpu.c}
 * has the same loop.
 */
final class FlagAnswer implements Loop {

    private static final int TIMEOUT = 2_000_000_000;

    private final SendMem sendMem;
    private final RecvMem recvMem;
    private final long[] samples;

    /** {@code samples} receives the time when each step's tail was seen, null if times are not recorded. */
    FlagAnswer(SendMem sendMem, RecvMem recvMem, long[] samples) {
        this.sendMem = sendMem;
        this.recvMem = recvMem;
        this.samples = samples;
    }

    @Override
    public long run(long count) {
        long first = sendMem.headAcquire();
        for (long step = first; step != first + count; step++) {
            if (!awaitTail(step)) {
                return LOST;
            }
            if (samples != null) {
                samples[(int) (step - first)] = System.nanoTime();
            }
            // release: pairs with the kernel's load of head, which may then write the slot
            sendMem.headRelease(step + 1);
        }
        return count;
    }

    private boolean awaitTail(long step) {
        for (int i = 0; i < TIMEOUT; i++) {
            // acquire: pairs with the kernel's fence and store of tail
            if (recvMem.tailAcquire() - step > 0) {
                return true;
            }
        }
        return false;
    }
}
