package org.millrace.device.host;

/**
 * A stream waits until a kernel of another has left the device; whether it was complete is not this stream's matter.
 */
final class OrderTask implements HostTask {

    private final HostKernel before;
    private boolean done;

    OrderTask(HostKernel before) {
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
