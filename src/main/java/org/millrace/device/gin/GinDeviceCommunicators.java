package org.millrace.device.gin;

import java.util.List;
import java.util.stream.IntStream;

/**
 * Device communicators of one communicator that a program's blocks use side by side, so that more descriptors are in
 * flight: DeepEP's {@code dcomms[]}. The holds on their contexts are numbered consecutively, beginning with the first
 * communicator's contexts. Safe from any thread.
 */
public final class GinDeviceCommunicators {

    private final List<GinDeviceCommunicator> all;

    /**
     * Combines device communicators.
     *
     * @param all at least one, of one communicator, created with the same requirements, in the same order on every rank
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

    /** Returns the device communicator that provides the teams and barriers for all. */
    public GinDeviceCommunicator first() {
        return all.getFirst();
    }

    /** Creates one block's holds on all contexts of all device communicators. */
    public HostGin[] hold() {
        return all.stream()
                .flatMap(each -> IntStream.range(0, each.contexts()).mapToObj(context -> new HostGin(each, context)))
                .toArray(HostGin[]::new);
    }

    /**
     * Reserves signals of every context for one user, for example a buffer, so that several users share the device
     * communicators: DeepEP's {@code get_signals_base}. Called in the same order on every rank.
     *
     * @param count number of signals
     * @return number of the first signal; the others follow it
     * @throws IllegalArgumentException if the requirements did not include enough signals
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
     * Returns when the sources of all puts through these holds have been read and their gets have arrived. The memory
     * may then be reused. Corresponds to DeepEP's quiet, where each thread flushes one context.
     */
    public static void quiet(HostGin[] holds) {
        for (HostGin gin : holds) {
            gin.flush();
        }
    }
}
