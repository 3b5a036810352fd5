package org.millrace.device.stream;

/**
 * A stream waits until a kernel of another has left the device; whether it was complete is not this stream's matter.
 */
final class OrderTask implements StreamTask {

    private final EmulatedKernel before;
    private boolean done;

    OrderTask(EmulatedKernel before) {
        this.before = before;
    }

    @Override
    public int progress() {
        done = before.done();
        return done ? 1 : 0;
    }

    @Override
    public void skip(Throwable reason) {
        done = true;
    }

    @Override
    public boolean done() {
        return done;
    }
}
