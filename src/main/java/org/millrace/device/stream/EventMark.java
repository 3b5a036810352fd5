package org.millrace.device.stream;

/**
 * Where an event was recorded once. The device's thread reaches it; anyone may look. Whoever sees that it is done sees
 * what the stream did before (volatile).
 */
final class EventMark implements StreamTask {

    private long nanos;
    private Throwable failure;
    private volatile boolean done;

    @Override
    public int progress() {
        nanos = System.nanoTime();
        done = true;
        return 1;
    }

    @Override
    public void skip(Throwable reason) {
        failure = reason;
        done = true;
    }

    @Override
    public boolean done() {
        return done;
    }

    /** Why what came before it failed, null if it did not; to be asked when it is done. */
    Throwable failure() {
        return failure;
    }

    /** When it was reached; to be asked when it is done and did not fail. */
    long nanos() {
        return nanos;
    }
}
