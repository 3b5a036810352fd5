package org.millrace.device.stream;

import java.lang.foreign.MemorySegment;

/** A copy between host and device memory, which here are one. */
final class CopyTask implements StreamTask {

    private final MemorySegment source;
    private final MemorySegment destination;
    private boolean done;

    CopyTask(MemorySegment source, MemorySegment destination) {
        if (source.byteSize() != destination.byteSize()) {
            throw new IllegalArgumentException("copy of " + source.byteSize() + " bytes into " + destination.byteSize()
                    + ": source and destination must be of one size");
        }
        this.source = source;
        this.destination = destination;
    }

    @Override
    public int progress() {
        destination.copyFrom(source);
        done = true;
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
