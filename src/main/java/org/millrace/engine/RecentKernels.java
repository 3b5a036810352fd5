package org.millrace.engine;

import org.jspecify.annotations.Nullable;
import org.millrace.engine.PlanLauncher.PlannedKernel;
import org.millrace.engine.PlannedOperation.Collective;

/**
 * The kernels of the last few collectives, to be launched again where the program asks for the same: to plan a small
 * one takes longer than to run it. Large ones are kept as well: to plan those alone each time takes code that small
 * ones have not warmed up (256 KiB behind smaller sizes, two processes: 150 us in place of 40). What is kept holds its
 * operands: their memory, if the collector manages it, stays for a few operations longer. One thread at a time.
 */
final class RecentKernels {

    private static final int KEPT = 4;

    private final Registrations registrations;
    private final @Nullable Collective[] asked = new Collective[KEPT];
    private final @Nullable PlannedKernel[] kernels = new PlannedKernel[KEPT];
    private int latest;
    /** Of the registrations that what is kept was planned with. */
    private int version;

    RecentKernels(Registrations registrations) {
        this.registrations = registrations;
    }

    /** The kernel of a collective like this one; null if it has to be planned. */
    @Nullable
    PlannedKernel find(Collective wanted) {
        int current = registrations.version();
        if (version != current) {
            version = current;
            forget();
        }
        for (int i = 0; i < KEPT; i++) {
            int at = latest + i & KEPT - 1;
            Collective known = asked[at];
            if (known != null && known.isLike(wanted)) {
                latest = at;
                return kernels[at];
            }
        }
        return null;
    }

    private void forget() {
        for (int i = 0; i < KEPT; i++) {
            asked[i] = null;
            kernels[i] = null;
        }
    }

    /** Behind {@link #find}: what was planned meanwhile. */
    void keep(Collective planned, PlannedKernel kernel) {
        latest = latest + KEPT - 1 & KEPT - 1;
        asked[latest] = planned;
        kernels[latest] = kernel;
    }
}
