package org.millrace.device.gin;

import java.util.List;
import java.util.stream.IntStream;

/**
 * Device communicators of one communicator that a program's blocks use side by side, so that more is under way at a
 * time: DeepEP's {@code dcomms[]}. Holds on their contexts have one number after another, first those of the first.
 * Safe from any thread.
 */
public final class GinDeviceCommunicators {

    private final List<GinDeviceCommunicator> all;

    /**
     * Device communicators as one.
     *
     * @param all one at least, of one communicator, made with the same requirements, in the same order on every rank
     */
    public GinDeviceCommunicators(List<GinDeviceCommunicator> all) {
        this.all = List.copyOf(all);
        if (all.isEmpty()) {
            throw new IllegalArgumentException("there must be one device communicator at least");
        }
        for (GinDeviceCommunicator each : all) {
            if (each.communicator() != first().communicator() || !each.requirements().equals(first().requirements())) {
                throw new IllegalArgumentException("device communicators of different communicators or requirements "
                        + "cannot be used as one: " + each.requirements() + ", " + first().requirements());
            }
        }
    }

    public static GinDeviceCommunicators of(GinDeviceCommunicator only) {
        return new GinDeviceCommunicators(List.of(only));
    }

    /** The one whose teams and barriers stand for all. */
    public GinDeviceCommunicator first() {
        return all.getFirst();
    }

    /** One block's holds on all contexts of all of them. */
    public HostGin[] hold() {
        return all.stream()
                .flatMap(each -> IntStream.range(0, each.contexts()).mapToObj(context -> new HostGin(each, context)))
                .toArray(HostGin[]::new);
    }

    /**
     * Takes signals of every context for one user of them, a buffer for instance, so that several share the device
     * communicators: DeepEP's {@code get_signals_base}. In the same order on every rank.
     *
     * @param count how many
     * @return the number of the first: the others follow it
     * @throws IllegalArgumentException if the requirements did not ask for so many
     */
    public synchronized int signalsBase(int count) {
        int base = first().takeSignals(count);
        for (GinDeviceCommunicator each : all.subList(1, all.size())) {
            int other = each.takeSignals(count);
            if (other != base) {
                throw new IllegalArgumentException("one of the device communicators is used alone too: its free signals"
                        + " begin at " + other + " and not at " + base);
            }
        }
        return base;
    }

    /**
     * Returns when the sources of all puts through these holds were read, and their gets have arrived: the memory may
     * be used again. DeepEP's quiet, in which each thread flushes one context.
     */
    public static void quiet(HostGin[] holds) {
        for (HostGin gin : holds) {
            gin.flush();
        }
    }
}
