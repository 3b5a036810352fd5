package org.millrace.device.stream;

import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;

/** A function of the host that a stream calls. What it throws does not concern the stream, as on a GPU. */
final class FunctionTask implements StreamTask {

    private static final Logger LOG = LogManager.getLogger(FunctionTask.class);

    private final EmulatedStream stream;
    private final Runnable function;
    private boolean done;

    FunctionTask(EmulatedStream stream, Runnable function) {
        this.stream = stream;
        this.function = function;
    }

    @Override
    public int progress() {
        done = true;
        try {
            function.run();
        } catch (RuntimeException | Error thrown) {
            LOG.error("{}: a host function failed; the stream goes on", stream, thrown);
        }
        return 1;
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
