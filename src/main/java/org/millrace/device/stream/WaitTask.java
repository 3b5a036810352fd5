package org.millrace.device.stream;

import org.millrace.MillraceException;

/**
 * A stream waits for a mark of another. Marks that can be waited for were recorded before, so that streams cannot wait
 * for each other in a circle.
 */
final class WaitTask implements StreamTask {

    private final EventMark mark;
    private boolean done;

    WaitTask(EventMark mark) {
        this.mark = mark;
    }

    @Override
    public int progress() {
        if (!mark.done()) {
            return 0;
        }
        done = true;
        if (mark.failure() != null) {
            throw new MillraceException("what this stream waits for failed: " + mark.failure().getMessage(),
                    mark.failure());
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
