package org.millrace.cli.perf;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Map;
import java.util.function.Consumer;
import org.millrace.Communicator;
import org.millrace.Millrace;
import org.millrace.MillraceException;
import org.millrace.Stream;
import org.millrace.cli.check.OperandMemory;
import org.millrace.cli.console.FailureText;
import org.millrace.cli.console.Host;
import org.millrace.cli.launch.RankEvent;
import org.millrace.cli.launch.RankWorker;
import org.millrace.cli.launch.RunDeadline;
import org.millrace.net.fault.Fault;
import org.millrace.net.fault.PlantedFaults;

/** Carries out a plan as one rank. {@link #run()} on one thread; {@link #abort()} from any. */
final class PerfWorker implements RankWorker {

    /**
     * The run as a whole is ended by {@link PerfRun}, whose message is the better one; this is for the case that it
     * cannot.
     */
    private static final Duration SLACK = Duration.ofSeconds(10);

    private final PerfPlan plan;
    private final int rank;
    private final String rendezvous;
    private final Map<String, String> settings;
    private final Consumer<RankEvent> events;
    private final RunDeadline deadline;
    private final Map<Fault, Long> faultsBefore = PlantedFaults.counts();

    private boolean failed;
    private volatile boolean aborted;
    private volatile Communicator joined;

    PerfWorker(PerfPlan plan, int rank, String rendezvous, Map<String, String> settings, Consumer<RankEvent> events) {
        this.plan = plan;
        this.rank = rank;
        this.rendezvous = rendezvous;
        this.settings = settings;
        this.events = events;
        deadline = RunDeadline.after(plan.deadline().plus(SLACK));
    }

    /**
     * Reports everything, failures included, as events. The last is {@link RankEvent.Finished} or
     * {@link RankEvent.Failed}.
     */
    @Override
    public void run() {
        try {
            measureAll();
            if (!failed) {
                tellOfFaults();
                events.accept(new RankEvent.Finished(rank));
            }
        } catch (Throwable failure) { // whatever it is, the other ranks must hear of it
            report(failure);
        }
    }

    /** Those of other ranks too, where ranks are threads: what counts is that a fault happened to one of them. */
    private void tellOfFaults() {
        PlantedFaults.counts().forEach((fault, count) -> {
            if (count > faultsBefore.getOrDefault(fault, 0L)) {
                events.accept(new RankEvent.Befallen(rank, fault.text()));
            }
        });
    }

    /** The first failure; what goes wrong when that is cleaned up says nothing new. */
    private void report(Throwable failure) {
        if (!failed) {
            failed = true;
            StringWriter trace = new StringWriter();
            failure.printStackTrace(new PrintWriter(trace, true));
            events.accept(new RankEvent.Failed(rank, FailureText.of(failure), trace.toString(), false));
        }
    }

    /** Ends the run early: its communicator fails, and with it what the rank is doing. */
    @Override
    public void abort() {
        aborted = true;
        Communicator communicator = joined;
        if (communicator != null) {
            communicator.abort();
        }
    }

    private void measureAll() {
        // Shared: the emulated device's threads read and write the operands. Closed last: only then does no thread
        // touch them.
        try (Arena arena = Arena.ofShared();
                Communicator communicator = Millrace.join(rendezvous, rank, plan.ranks(), settings)) {
            joined = communicator;
            if (aborted) {
                throw new MillraceException("ended because another rank failed");
            }
            events.accept(new RankEvent.Joined(rank, ProcessHandle.current().pid(), Host.name(),
                    communicator.device().name()));
            try (Stream stream = communicator.device().newStream()) {
                measure(communicator, stream, arena);
            }
        }
    }

    /**
     * Aborts here, where stream and communicator are still open: their close() would wait for operations that may never
     * end.
     */
    private void measure(Communicator communicator, Stream stream, Arena arena) {
        try {
            OperandMemory memory =
                    new OperandMemory(communicator.device(), stream, deadline, rank, plan.ranks(), arena);
            MemorySegment send = communicator.device().allocate(plan.largestBytes(), arena);
            MemorySegment receive = communicator.device().allocate(plan.largestBytes(), arena);
            new Measurement(plan, communicator, stream, memory, send, receive, deadline).run(events);
        } catch (Throwable failure) {
            report(failure); // before the abort makes the others fail, so that the cause is heard first
            communicator.abort();
        }
    }
}
