package org.millrace.cli.run;

import java.lang.foreign.Arena;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.millrace.Communicator;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.MillraceException;

/**
 * Work of one rank on a communicator and a stream. {@link #run} runs on one thread; {@link #abort()} is callable from
 * any thread.
 */
public abstract class CommunicatorWorker implements RankWorker {

    private final String rendezvous;
    private final int rank;
    private final int size;
    private final Map<String, String> settings;
    private volatile boolean aborted;
    private volatile @Nullable Communicator joined;

    protected CommunicatorWorker(String rendezvous, int rank, int size, Map<String, String> settings) {
        this.rendezvous = rendezvous;
        this.rank = rank;
        this.size = size;
        this.settings = settings;
    }

    /** Does all the work. The arena is closed after the stream and the communicator. */
    protected abstract void work(Communicator communicator, DeviceStream stream, Arena arena, Reporter reporter);

    /**
     * Joins the communicator and does the work. After a failure, aborts the communicator before the stream and the
     * communicator are closed. Without the abort, close() would wait for operations that possibly never end.
     */
    @Override
    public void run(Reporter reporter) {
        // A shared arena, because the emulated device's threads access the operands. It is closed last, when no
        // thread accesses the operands any longer.
        try (Arena arena = Arena.ofShared();
                Communicator communicator = Millrace.join(rendezvous, rank, size, settings)) {
            // Volatile write before the read of `aborted`. abort() writes `aborted` before it reads `joined`, so that
            // at least one of the two threads sees the other's write (Dekker).
            joined = communicator;
            if (aborted) {
                throw new MillraceException("ended because another rank failed");
            }
            try (DeviceStream stream = communicator.device().newStream()) {
                try {
                    work(communicator, stream, arena, reporter);
                } catch (Throwable failure) {
                    // The failure is reported before the abort, because the abort makes the peers fail and report
                    // failures, too.
                    reporter.fail(failure);
                    communicator.abort();
                    throw failure;
                }
            }
        }
    }

    @Override
    public void abort() {
        aborted = true;
        Communicator communicator = joined;
        if (communicator != null) {
            communicator.abort();
        }
    }
}
