package org.millrace.cli;

import java.util.List;
import org.millrace.Route;

/**
 * Difference between the requested and the actual route.
 *
 * @param refusal the communicator's reason for the difference. Empty if there is none
 * @param failure error for a difference without a reason. Empty otherwise
 * @param general whether the difference is the same on all ranks, and for every size and type of the collective
 */
record RouteMismatch(String refusal, String failure, boolean general) {

    static final RouteMismatch NONE = new RouteMismatch("", "", false);

    /**
     * Returns the difference between the requested transport and the transport that ran.
     *
     * @param asked the requested transport
     * @param got   the transport that ran
     * @param ran   the whole route that ran
     * @param first transports that have priority over the requested transport
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
     * Returns the difference between a requested value and the value that ran.
     *
     * @param asked the requested value
     * @param got   the value that ran
     * @param ran   the whole route that ran
     */
    static RouteMismatch of(String asked, String got, Route ran, boolean general) {
        for (String refusal : ran.refusals()) {
            if (refusal.startsWith(asked + ": ")) {
                // Process numbers and rank numbers differ between runs. They are removed, so that equal reasons can be
                // grouped.
                return new RouteMismatch(refusal.replaceAll(" (process|rank) \\d+", " $1"), "", general);
            }
        }
        return new RouteMismatch("", "asked for " + asked + ", " + got + " ran, and nothing says why", false);
    }
}
