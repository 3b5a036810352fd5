package org.millrace.cli.perf;

import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.millrace.Communicator;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.MillraceException;
import org.millrace.cli.base.Host;
import org.millrace.cli.run.RankWorker;
import org.millrace.cli.run.RunDeadline;
import org.millrace.net.link.Fault;

/** Runs a plan as one rank. {@link #run} runs on one thread; {@link #abort()} is callable from any thread. */
public final class PerfWorker implements RankWorker {

    /**
     * Extra time beyond the deadline of the parent process. Normally the parent ends the run first, with a better
     * message. This deadline applies if the parent cannot end the run.
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

    public PerfWorker(PerfPlan plan, int rank, String rendezvous, Map<String, String> settings) {
        this.plan = plan;
        this.rank = rank;
        this.rendezvous = rendezvous;
        this.settings = settings;
        deadline = RunDeadline.after(plan.deadline().plus(SLACK));
    }

    @Override
    public void run(Reporter reporter) {
        // A shared arena, because the emulated device's threads access the operands. It is closed last, when no
        // thread accesses the operands any longer.
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

    /**
     * Reports the planted faults that have happened since the start of this rank. If ranks are threads, the reported
     * faults include faults of other ranks. Reports of other ranks' faults do no harm, because a fault need only happen
     * at one rank.
     */
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
     * Measures. After a failure, aborts the communicator before the stream and the communicator are closed. Without the
     * abort, close() would wait for operations that may never end.
     */
    private void measure(Communicator communicator, DeviceStream stream, Arena arena, Reporter reporter) {
        try (CheckedCollectives collectives =
                new CheckedCollectives(communicator, stream, arena, plan.largestBytes(), deadline, plan.register())) {
            new Measurement(plan, communicator, collectives).run(reporter);
        } catch (Throwable failure) {
            // The failure is reported before the abort, because the abort makes the peers fail and report failures,
            // too.
            reporter.fail(failure);
            communicator.abort();
            throw failure;
        }
    }
}
