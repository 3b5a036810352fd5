package org.millrace.bench;

import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;

/**
 * The other thread of a ring. It takes every posted step and frees its slot, like a proxy with a network without cost.
 */
final class RingEcho {

    private static final long JOIN_MILLIS = 10_000;

    private final SendMem sendMem;
    private final RecvMem recvMem;
    private final Thread thread;
    private volatile boolean running = true;
    private volatile long bytes;

    RingEcho(Connection connection) {
        sendMem = connection.sendMem();
        recvMem = connection.recvMem();
        thread = Thread.ofPlatform().daemon().name("ring-echo").start(this::run);
    }

    private void run() {
        long step = sendMem.headPlain();
        long sum = 0;
        while (running) {
            // acquire: pairs with the poster's release of tail; the size of every step before it can be read
            long tail = recvMem.tailAcquire();
            if (tail == step) {
                Thread.onSpinWait();
                continue;
            }
            for (; step != tail; step++) {
                int slot = ConnectionLayout.slot(step);
                sum += recvMem.sizePlain(slot);
                recvMem.sizePlain(slot, RecvMem.EMPTY);
            }
            // release: pairs with the poster's acquire of head, after which it sees the reset sizes and may write the
            // slots
            sendMem.headRelease(step);
        }
        bytes = sum;
    }

    boolean isAlive() {
        return thread.isAlive();
    }

    /** Stops the thread. Returns the sum of the sizes of all steps that it took. */
    long stop() {
        running = false;
        try {
            thread.join(JOIN_MILLIS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        if (thread.isAlive()) {
            throw new IllegalStateException(
                    "thread " + thread.getName() + " did not stop within " + JOIN_MILLIS / 1000 + " s");
        }
        return bytes;
    }
}
