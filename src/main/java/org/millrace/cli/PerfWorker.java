package org.millrace.cli;

import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.millrace.Communicator;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.MillraceException;
import org.millrace.net.link.Fault;

/** Carries out a plan as one rank. {@link #run()} on one thread; {@link #abort()} from any. */
final class PerfWorker implements RankWorker {

    /**
     * The run as a whole is ended by the process that started it, whose message is the better one; this is for the case
     * that it cannot.
     */
    private static final Duration SLACK = Duration.ofSeconds(10);

    private final PerfPlan plan;
    private final int rank;
    private final String rendezvous;
    private final Map<String, String> settings;
    private final RunDeadline deadline;
    private final Map<Fault, Long> faultsBefore = Fault.PlantedFaults.counts();

    private volatile boolean aborted;
    private volatile @Nullable Communicator joined;

    PerfWorker(PerfPlan plan, int rank, String rendezvous, Map<String, String> settings) {
        this.plan = plan;
        this.rank = rank;
        this.rendezvous = rendezvous;
        this.settings = settings;
        deadline = RunDeadline.after(plan.deadline().plus(SLACK));
    }

    @Override
    public void run(Reporter reporter) {
        // Shared: the emulated device's threads read and write the operands. Closed last: only then does no thread
        // touch them.
        try (Arena arena = Arena.ofShared();
                Communicator communicator = Millrace.join(rendezvous, rank, plan.ranks(), settings)) {
            joined = communicator;
            if (aborted) {
                throw new MillraceException("ended because another rank failed");
            }
            reporter.tell(new PerfEvent.Joined(rank, ProcessHandle.current().pid(), Host.name(),
                    communicator.device().name()));
            try (DeviceStream stream = communicator.device().newStream()) {
                measure(communicator, stream, arena, reporter);
            }
        }
        tellOfFaults(reporter);
    }

    /** Those of other ranks too, where ranks are threads: what counts is that a fault happened to one of them. */
    private void tellOfFaults(Reporter reporter) {
        Fault.PlantedFaults.counts().forEach((fault, count) -> {
            if (count > faultsBefore.getOrDefault(fault, 0L)) {
                reporter.tell(new PerfEvent.FaultHappened(rank, fault.text()));
            }
        });
    }

    @Override
    public void abort() {
        aborted = true;
        Communicator communicator = joined;
        if (communicator != null) {
            communicator.abort();
        }
    }

    /**
     * Aborts here, where stream and communicator are still open: their close() would wait for operations that may never
     * end.
     */
    private void measure(Communicator communicator, DeviceStream stream, Arena arena, Reporter reporter) {
        try (CheckedCollectives collectives =
                new CheckedCollectives(communicator, stream, arena, plan.largestBytes(), deadline, plan.register())) {
            new Measurement(plan, communicator, collectives).run(reporter);
        } catch (Throwable failure) {
            reporter.fail(failure); // before the abort makes the others fail, so that the cause is heard first
            communicator.abort();
            throw failure;
        }
    }
}
