package org.millrace.bench.idle;

import org.millrace.agent.IdleProfile;
import org.millrace.bench.measure.Loop;

/** Takes steps as an agent's thread does, with one of Millrace's idle strategies. {@code idle.c} has the same loop. */
public final class IdleLoop implements Loop {

    private final StepTimes steps;
    private final Waiting waiting;
    private final long[] samples;

    /**
     * Creates a loop that takes steps.
     *
     * @param steps   source of the steps
     * @param waiting behavior between steps
     * @param samples nanoseconds from each step's planned time until it was seen
     */
    public IdleLoop(StepTimes steps, Waiting waiting, long[] samples) {
        this.steps = steps;
        this.waiting = waiting;
        this.samples = samples;
    }

    @Override
    public long run(long count) {
        IdleProfile.Backoff strategy = new IdleProfile.Backoff(waiting.spins(), waiting.yields(),
                waiting.minParkNanos(), waiting.maxParkNanos());
        long step = 0;
        while (step < count) {
            long tail = steps.tailAcquire();
            int work = (int) (tail - step);
            for (; step != tail; step++) {
                samples[(int) step] = System.nanoTime() - steps.time(step);
            }
            strategy.idle(work);
        }
        return step;
    }
}
