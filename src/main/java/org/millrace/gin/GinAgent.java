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
import org.millrace.foreign.Words;

/**
 * Carries out the descriptors of several communicators on one thread, without allocation. Other threads pass their
 * requests to the agent in a queue.
 */
public final class GinAgent implements Agent {

    /**
     * Time that a waiting thread adds to its patience, because the agent answers only between two passes. If the agent
     * has not answered when this time has passed, the agent counts as blocked.
     */
    private static final Duration ANSWER = Duration.ofSeconds(10);

    /** Number of successive polls without work after which a communicator counts as idle. */
    private static final int BUSY_POLLS = 10_000;

    private static final VarHandle PASSES = Words.field(MethodHandles.lookup(), "passes", long.class);

    private final String name;
    private final RequestQueue requests = new RequestQueue();
    /**
     * Communicators that this agent polls. NCCL creates several communicators even if a program uses only one
     * communicator. Idle communicators are therefore polled less often, so that they do not delay busy communicators.
     */
    private final PollSchedule<GinCommunicator> schedule =
            new PollSchedule<>(new GinCommunicator[0], this::poll, BUSY_POLLS);

    /**
     * Objects that end the waits of kernels of failed communicators, if these kernels wait without a deadline. Each
     * object stays in the list until {@link #remove}.
     */
    private final List<WaitRelease> failed = new ArrayList<>();
    /** Number of completed passes. Written only by the agent's thread. */
    private long passes;

    public GinAgent(String name) {
        this.name = name;
    }

    /**
     * Request of another thread that waits for a condition. Only the agent's thread may evaluate the condition. At the
     * end of the wait, the agent's thread executes an action, even if the condition was not met in time.
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

    /** Serves a communicator. One of the next passes is the first that serves it. */
    public void add(GinCommunicator communicator) {
        communicator.servedBy(this);
        requests.add(() -> schedule.add(List.of(communicator)));
    }

    /**
     * Stops serving a communicator and closes its connections. First waits until the operations in flight are complete,
     * at most for the patience. When this method returns, the agent's thread and the network no longer access the
     * communicator's windows and contexts. After a failure the agent closes the connections itself, but may still serve
     * the contexts until this method is called, to release waiting kernels.
     *
     * @param patience maximum time to wait for the operations in flight
     * @return whether all operations in flight completed
     * @throws GinException if the agent does not answer, or a connection could not be closed; the communicator's memory
     *                      must not be freed then
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
                    + patience.plus(ANSWER).toMillis() + " ms; the communicator's memory is not freed");
        }
        if (!communicator.isDisconnected()) {
            throw new GinException("rank " + communicator.rank()
                    + ": a connection could not be closed; the communicator's memory is not freed: "
                    + communicator.unclosed(), communicator.unclosed());
        }
        return removal.isFulfilled();
    }

    /**
     * Waits until a condition is true. The agent's thread evaluates the condition after its passes. Returns false if
     * the condition is not true within the patience, or if the communicator is disconnected first.
     */
    boolean await(GinCommunicator communicator, BooleanSupplier condition, Duration patience) {
        RequestQueue.Request request = requests.ask(new Wait(communicator, condition, () -> {}, patience));
        return request.await(patience.plus(ANSWER)) && request.isFulfilled();
    }
}
