package org.millrace.device.stream;

/** The last task of a stream that nobody waits for. */
final class CloseTask implements StreamTask {

    private final Runnable close;
    private boolean done;

    CloseTask(Runnable close) {
        this.close = close;
    }

    @Override
    public int progress() {
        close.run();
        done = true;
        return 1;
    }

    @Override
    public void skip(Throwable reason) {
        progress();
    }

    @Override
    public boolean done() {
        return done;
    }
}
