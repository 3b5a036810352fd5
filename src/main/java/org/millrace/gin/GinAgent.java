package org.millrace.gin;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.millrace.agent.Agent;

/**
 * Carries out the descriptors of communicators, many a pass and without allocating. What other threads want of it waits
 * in a queue.
 */
public final class GinAgent implements Agent {

    /** How long an agent's pass may take at the most before those who wait for it give up. */
    private static final Duration ANSWER = Duration.ofSeconds(10);

    private static final int PASSES_UNTIL_REST = 10_000;
    private static final int PASSES_BETWEEN_VISITS = 16;

    private final String name;
    private final Queue<Request> requests = new ConcurrentLinkedQueue<>();
    private final List<Request> pending = new ArrayList<>();
    private GinCommunicator[] communicators = {};
    private int pass;
    private boolean othersActive;

    /**
     * An agent with nothing to serve.
     *
     * @param name for its thread and for messages
     */
    public GinAgent(String name) {
        this.name = name;
    }

    /**
     * Something that a thread waits for: a condition that only this agent's thread may look at, and what is done then.
     */
    private static final class Request {
        private final GinCommunicator communicator;
        private final BooleanSupplier condition;
        private final Runnable end;
        private final long deadline;
        private final CountDownLatch answered = new CountDownLatch(1);
        /** Written before the latch opens, which publishes it. */
        private boolean met;

        Request(GinCommunicator communicator, BooleanSupplier condition, Runnable end, Duration patience) {
            this.communicator = communicator;
            this.condition = condition;
            this.end = end;
            this.deadline = System.nanoTime() + patience.toNanos();
        }

        boolean tryToAnswer() {
            met = condition.getAsBoolean();
            if (!met && !communicator.isDisconnected() && deadline - System.nanoTime() > 0) {
                return false;
            }
            end.run();
            answered.countDown();
            return true;
        }
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public int doWork() {
        int work = 0;
        Request request = requests.poll();
        if (request != null) {
            pending.add(request);
            work++;
        }
        work += visit(communicators); // the array is replaced, not changed: a communicator that fails leaves the field,
                                      // not this pass
        if (!pending.isEmpty()) {
            pending.removeIf(Request::tryToAnswer);
        }
        return work;
    }

    /**
     * NCCL makes several communicators where a program uses one: those that rest are visited seldom while another is
     * busy, so that they do not hold it up.
     */
    private int visit(GinCommunicator[] all) {
        int work = 0;
        int active = 0;
        pass++;
        for (int i = 0; i < all.length; i++) {
            boolean resting = all[i].passesWithoutWork() > PASSES_UNTIL_REST;
            active += resting ? 0 : 1;
            if (!resting || !othersActive || (pass + i) % PASSES_BETWEEN_VISITS == 0) {
                work += all[i].countWork(progress(all[i]));
            }
        }
        othersActive = active > 0;
        return work;
    }

    private int progress(GinCommunicator communicator) {
        try {
            return communicator.progress();
        } catch (Throwable failure) {
            communicator.fail(failure);
            drop(communicator);
            return 0;
        }
    }

    @Override
    public void onFailure(Throwable failure) {
        for (GinCommunicator communicator : communicators) {
            communicator.fail(failure);
            drop(communicator);
        }
    }

    private void drop(GinCommunicator communicator) {
        List<GinCommunicator> remaining = new ArrayList<>(List.of(communicators));
        if (remaining.remove(communicator)) {
            communicators = remaining.toArray(GinCommunicator[]::new);
            communicator.disconnect();
        }
    }

    /**
     * Serves a communicator from the next pass on.
     *
     * @param communicator that no agent has served
     */
    public void add(GinCommunicator communicator) {
        communicator.servedBy(this);
        requests.add(new Request(communicator, () -> true, () -> {
            List<GinCommunicator> all = new ArrayList<>(List.of(communicators));
            all.add(communicator);
            communicators = all.toArray(GinCommunicator[]::new);
        }, Duration.ZERO));
    }

    /**
     * Serves a communicator no longer and ends its connections, after what is under way is through. When this returns,
     * nothing touches its windows and contexts.
     *
     * @param communicator that was added; one that has failed is no longer served, and only this call knows so for sure
     * @param patience     how long to wait for what is under way
     * @return whether all of it was through
     * @throws GinException if the agent does not answer, or a connection could not be closed: no memory may be freed
     */
    public boolean remove(GinCommunicator communicator, Duration patience) {
        Request removal = new Request(communicator,
                () -> communicator.failure() == null && (communicator.isDisconnected() || communicator.isDrained()),
                () -> {
                    drop(communicator);
                    communicator.servedBy(null);
                }, patience);
        if (!ask(removal)) {
            throw new GinException("rank " + communicator.rank() + ": agent " + name + " did not answer within "
                    + patience.plus(ANSWER).toMillis() + " ms; the communicator's memory is left alone");
        }
        if (!communicator.isDisconnected()) {
            throw new GinException("rank " + communicator.rank()
                    + ": a connection could not be closed; the communicator's memory is left alone: "
                    + communicator.unclosed(), communicator.unclosed());
        }
        return removal.met;
    }

    /**
     * Waits until something holds on the agent's thread; false if it did not within the patience, or after a failure.
     */
    boolean await(GinCommunicator communicator, BooleanSupplier condition, Duration patience) {
        Request request = new Request(communicator, condition, () -> {}, patience);
        return ask(request) && request.met;
    }

    private boolean ask(Request request) {
        requests.add(request);
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    return request.answered.await(request.deadline - System.nanoTime() + ANSWER.toNanos(),
                            TimeUnit.NANOSECONDS);
                } catch (InterruptedException e) {
                    interrupted = true; // whoever waits is about to free memory: the interrupt is kept for later
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
