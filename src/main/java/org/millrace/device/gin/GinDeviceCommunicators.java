package org.millrace.device.gin;

import java.util.List;
import java.util.stream.IntStream;

/**
 * Device communicators of one communicator. The blocks of a program use them together, as DeepEP uses {@code dcomms[]}.
 * More descriptors can be in flight than with a single device communicator. The handles of the contexts
 * ({@link HostGin}) are numbered consecutively, beginning with the contexts of the first device communicator. Safe from
 * any thread.
 */
public final class GinDeviceCommunicators {

    private final List<GinDeviceCommunicator> all;

    /**
     * Combines device communicators.
     *
     * @param all one or more device communicators of the same communicator with the same requirements; all ranks must
     *            create them in the same order
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

    /** Returns the first device communicator. Its teams and barriers serve all device communicators. */
    public GinDeviceCommunicator first() {
        return all.getFirst();
    }

    /** Creates the handles of one block: a handle for each context of each device communicator. */
    public HostGin[] hold() {
        return all.stream()
                .flatMap(each -> IntStream.range(0, each.contexts()).mapToObj(context -> new HostGin(each, context)))
                .toArray(HostGin[]::new);
    }

    /**
     * Reserves signals of every context for one user, for example for a buffer of DeepEP. Several users can then share
     * the device communicators. Corresponds to DeepEP's {@code get_signals_base}. All ranks must make these calls in
     * the same order.
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
     * Waits for all puts and gets that were posted through these handles. Afterwards the sources of the puts have been
     * read, and the data of the gets has arrived. The program may then reuse the sources. Corresponds to DeepEP's quiet
     * operation, in which each thread flushes one context.
     */
    public static void quiet(HostGin[] holds) {
        for (HostGin gin : holds) {
            gin.flush();
        }
    }
}
