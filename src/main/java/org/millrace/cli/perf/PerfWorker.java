package org.millrace.cli.perf;

import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.Map;
import org.millrace.Communicator;
import org.millrace.DeviceStream;
import org.millrace.cli.base.Host;
import org.millrace.cli.run.CommunicatorWorker;
import org.millrace.cli.run.RunDeadline;
import org.millrace.net.link.Fault;

/** Runs a plan as one rank. {@link #run} runs on one thread; {@link #abort()} is callable from any thread. */
public final class PerfWorker extends CommunicatorWorker {

    /**
     * Time by which this rank's deadline is later than the parent process's deadline. Normally the parent ends the run
     * first, with a better message. This rank's deadline applies if the parent cannot end the run.
     */
    private static final Duration SLACK = Duration.ofSeconds(10);

    private final PerfPlan plan;
    private final int rank;
    private final RunDeadline deadline;
    private final Map<Fault, Long> faultsBefore = Fault.PlantedFaults.counts();

    public PerfWorker(PerfPlan plan, int rank, String rendezvous, Map<String, String> settings) {
        super(rendezvous, rank, plan.ranks(), settings);
        this.plan = plan;
        this.rank = rank;
        deadline = RunDeadline.after(plan.deadline().plus(SLACK));
    }

    @Override
    public void run(Reporter reporter) {
        super.run(reporter);
        tellOfFaults(reporter);
    }

    @Override
    protected void work(Communicator communicator, DeviceStream stream, Arena arena, Reporter reporter) {
        reporter.tell(
                new PerfEvent.Joined(rank, ProcessHandle.current().pid(), Host.name(), communicator.device().name()));
        try (CheckedCollectives collectives =
                new CheckedCollectives(communicator, stream, arena, plan.largestBytes(), deadline, plan.register())) {
            new Measurement(plan, communicator, collectives).run(reporter);
        }
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
}
