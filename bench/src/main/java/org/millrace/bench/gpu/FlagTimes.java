package org.millrace.bench.gpu;

import org.HdrHistogram.Histogram;

/** Times of single steps between GPU and host. */
public final class FlagTimes {

    private final Histogram roundTrips = new Histogram(3);
    private final Histogram oneWay = new Histogram(3);

    /** Creates an instance without times. */
    public FlagTimes() {}

    /**
     * Adds the steps of a launch.
     *
     * @param memory memory of the last launch
     * @param seen   time when the host saw each step
     */
    public void add(FlagMemory memory, long[] seen) {
        long[] posted = new long[seen.length];
        long[] credited = new long[seen.length];
        for (int step = 0; step < seen.length; step++) {
            posted[step] = memory.postedAt(step);
            credited[step] = memory.creditedAt(step);
        }
        ClockFit clock = new ClockFit(posted, credited, seen);
        for (int step = 1; step < seen.length; step++) {
            roundTrips.recordValue(Math.max(0, Math.round(clock.nanos(credited[step] - posted[step]))));
            oneWay.recordValue(Math.max(0, Math.round(seen[step] - clock.host(posted[step]))));
        }
    }

    /**
     * {@return times from before the store of tail until head was seen, on the GPU, corrected for coordinated omission}
     */
    public Histogram roundTrips() {
        return roundTrips.copyCorrectedForCoordinatedOmission(roundTrips.getValueAtPercentile(50));
    }

    /** {@return times from before the store of tail until the host saw it, corrected for coordinated omission} */
    public Histogram oneWay() {
        return oneWay.copyCorrectedForCoordinatedOmission(roundTrips.getValueAtPercentile(50));
    }
}
