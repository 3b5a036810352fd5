package org.millrace.gin;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.millrace.agent.Agent;
import org.millrace.agent.PollSchedule;
import org.millrace.agent.RequestQueue;

/**
 * Carries out the descriptors of communicators, several per pass, without allocation. Requests of other threads wait in
 * a queue.
 */
public final class GinAgent implements Agent {

    /** Maximum duration of an agent's pass before waiting threads give up. */
    private static final Duration ANSWER = Duration.ofSeconds(10);

    /** Number of polls without work after which a communicator is idle. */
    private static final int BUSY_POLLS = 10_000;

    private static final VarHandle PASSES;

    static {
        try {
            PASSES = MethodHandles.lookup().findVarHandle(GinAgent.class, "passes", long.class);
        } catch (ReflectiveOperationException impossible) {
            throw new AssertionError(impossible);
        }
    }

    private final String name;
    private final RequestQueue requests = new RequestQueue();
    /**
     * Poll schedule. NCCL makes several communicators even if a program uses only one, so idle communicators must not
     * delay the others.
     */
    private final PollSchedule<GinCommunicator> schedule =
            new PollSchedule<>(new GinCommunicator[0], this::poll, BUSY_POLLS);

    /** Wait releases of communicators that have failed. Their kernels are served until the communicator is removed. */
    private final List<WaitRelease> failed = new ArrayList<>();
    /** Number of completed passes. Only the agent's thread writes it. */
    private long passes;

    public GinAgent(String name) {
        this.name = name;
    }

    /**
     * A request of a thread that waits for a condition, which only the agent's thread may evaluate. An action may
     * follow on the agent's thread.
     */
    private static final class Wait extends RequestQueue.Request {
        private final GinCommunicator communicator;
        private final BooleanSupplier condition;
        private final Runnable end;
        private final long deadline;

        Wait(GinCommunicator communicator, BooleanSupplier condition, Runnable end, Duration patience) {
            this.communicator = communicator;
            this.condition = condition;
            this.end = end;
            this.deadline = System.nanoTime() + patience.toNanos();
        }

        @Override
        protected boolean attempt() {
            boolean met = condition.getAsBoolean();
            if (!met && !communicator.isDisconnected() && deadline - System.nanoTime() > 0) {
                return false;
            }
            end.run();
            return answer(met);
        }
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public int doWork() {
        int work = requests.runOne();
        work += schedule.pass();
        for (int i = 0; i < failed.size(); i++) {
            failed.get(i).look();
        }
        requests.answer();
        PASSES.setOpaque(this, passes + 1);
        return work;
    }

    /** Returns the number of completed passes. Callable from any thread. */
    public long passes() {
        return (long) PASSES.getOpaque(this);
    }

    private int poll(GinCommunicator communicator) {
        int work;
        try {
            work = communicator.progress();
        } catch (Throwable failure) {
            communicator.fail(failure);
            drop(communicator);
            work = 0;
        }
        return communicator.countWork(work);
    }

    @Override
    public void onFailure(Throwable failure) {
        for (GinCommunicator communicator : schedule.all()) {
            communicator.fail(failure);
            drop(communicator);
        }
    }

    private void drop(GinCommunicator communicator) {
        if (schedule.remove(communicator)) {
            communicator.disconnect();
            if (communicator.failure() != null && communicator.hasKernels()) {
                failed.add(communicator.waits());
            }
        }
    }

    /** Serves a communicator from the next pass on. */
    public void add(GinCommunicator communicator) {
        communicator.servedBy(this);
        requests.add(() -> schedule.add(List.of(communicator)));
    }

    /**
     * Stops serving a communicator and closes its connections, after the operations in flight are complete. When this
     * method returns, no thread accesses the communicator's windows and contexts. Only this call ensures that a failed
     * communicator is no longer served.
     *
     * @return whether all operations in flight were completed
     * @throws GinException if the agent does not answer, or a connection could not be closed; no memory may be freed
     *                      then
     */
    public boolean remove(GinCommunicator communicator, Duration patience) {
        RequestQueue.Request removal = requests.ask(new Wait(communicator,
                () -> communicator.failure() == null && (communicator.isDisconnected() || communicator.isDrained()),
                () -> {
                    drop(communicator);
                    failed.remove(communicator.waits());
                    communicator.servedBy(null);
                }, patience));
        if (!removal.await(patience.plus(ANSWER))) {
            throw new GinException("rank " + communicator.rank() + ": agent " + name + " did not answer within "
                    + patience.plus(ANSWER).toMillis() + " ms; the communicator's memory is left alone");
        }
        if (!communicator.isDisconnected()) {
            throw new GinException("rank " + communicator.rank()
                    + ": a connection could not be closed; the communicator's memory is left alone: "
                    + communicator.unclosed(), communicator.unclosed());
        }
        return removal.isFulfilled();
    }

    /** Waits until a condition is true on the agent's thread. Returns false after a timeout, or after a failure. */
    boolean await(GinCommunicator communicator, BooleanSupplier condition, Duration patience) {
        RequestQueue.Request request = requests.ask(new Wait(communicator, condition, () -> {}, patience));
        return request.await(patience.plus(ANSWER)) && request.isFulfilled();
    }
}
