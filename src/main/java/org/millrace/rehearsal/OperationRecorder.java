package org.millrace.rehearsal;

import org.jspecify.annotations.Nullable;
import org.millrace.trace.Recorder;

/** The operations of a communicator. */
final class OperationRecorder implements Recorder.Operations {

    private final Recording recording;
    private final int number;
    private final long hash;
    private @Nullable Runnable look;

    OperationRecorder(Recording recording, int number, long hash) {
        this.recording = recording;
        this.number = number;
        this.hash = hash;
    }

    @Override
    public void describe(int rank, int size, int nodes, String name) {
        recording.define("communicator", number, Long.toHexString(hash), rank, size, nodes, name);
    }

    @Override
    public void enqueued(long operation, long time, String name, long sequence, long bytes, long count, int type,
            int peer, int root, long launch) {
        recording.appendOperation(RecordFormat.head(RecordFormat.ENQUEUED, type, recording.name(name), number), time,
                operation, bytes, count, sequence, RecordFormat.pair(peer, root), launch);
    }

    @Override
    public void ran(long operation, long started, long ended) {
        recording.appendOperation(RecordFormat.head(RecordFormat.RAN, 0, 0, number), started, ended, operation, 0, 0, 0,
                0);
    }

    @Override
    public void watch(Runnable what) {
        look = what;
        recording.watch(what);
    }

    @Override
    public void close() {
        if (look != null) {
            recording.unwatch(look);
            look.run();
        }
    }
}
