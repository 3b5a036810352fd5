package org.millrace.cli;

import java.util.List;
import org.millrace.Route;

/**
 * That something else ran than was asked for.
 *
 * @param refusal what the communicator says why; empty if there is no difference, or none that it can explain
 * @param failure what is wrong; empty if there is no difference, or one with a reason
 * @param general whether it is the same on all ranks, and for every size and type of the collective
 */
record RouteMismatch(String refusal, String failure, boolean general) {

    static final RouteMismatch NONE = new RouteMismatch("", "", false);

    /**
     * A difference.
     *
     * @param asked what was asked for
     * @param got   what ran
     * @param ran   all about it
     * @param first transports that are asked before the one that was asked for
     */
    static RouteMismatch ofTransport(String asked, String got, Route ran, List<String> first) {
        for (String other : first) {
            if (!other.equals(asked) && ran.transports().stream().anyMatch(each -> each.startsWith(other))) {
                return new RouteMismatch(asked + ": " + other + " is asked first, and says yes", "", false);
            }
        }
        return of(asked, got, ran, false);
    }

    /**
     * A difference.
     *
     * @param asked what was asked for
     * @param got   what ran
     * @param ran   all about it
     */
    static RouteMismatch of(String asked, String got, Route ran, boolean general) {
        for (String refusal : ran.refusals()) {
            if (refusal.startsWith(asked + ": ")) {
                // numbers of processes are different every time
                return new RouteMismatch(refusal.replaceAll(" (process|rank) \\d+", " $1"), "", general);
            }
        }
        return new RouteMismatch("", "asked for " + asked + ", " + got + " ran, and nothing says why", false);
    }
}
