package org.millrace.gin.cuda;

import org.millrace.cuda.copy.CopyQueue;
import org.millrace.gin.window.StagingBuffers;

/** The copies of both queues that touch staging buffers. On the agent's thread, with the device current. */
final class StagingCopies implements StagingBuffers.Copies {

    private final CopyQueue out;
    private final CopyQueue in;
    private long lastOut;
    private long lastIn;

    StagingCopies(CopyQueue out, CopyQueue in) {
        this.out = out;
        this.in = in;
    }

    @Override
    public void mark() {
        lastOut = out.last();
        lastIn = in.last();
    }

    @Override
    public boolean arePastMark() {
        return out.isDone(lastOut) && in.isDone(lastIn);
    }
}
