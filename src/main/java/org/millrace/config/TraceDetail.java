package org.millrace.config;

import java.util.Locale;
import java.util.Optional;

/** How much of what a process does is traced. */
public enum TraceDetail {
    /** Nothing. */
    OFF,
    /** Counters. */
    COUNTERS,
    /** Counters, and the last steps of each connection. */
    STEPS;

    /**
     * {@return what is traced of proxies}
     *
     * @param set        the value of {@link Settings#TRACE}
     * @param isSet      whether somebody set it
     * @param proxyTrace the value of {@link Settings#PROXY_TRACE}
     * @throws ConfigurationException if the two contradict each other
     */
    public static TraceDetail of(TraceDetail set, boolean isSet, Optional<Boolean> proxyTrace) {
        if (proxyTrace.isEmpty()) {
            return set;
        }
        boolean steps = proxyTrace.get();
        if (isSet && steps != (set == STEPS)) {
            throw new ConfigurationException(Settings.PROXY_TRACE.name() + "=" + (steps ? 1 : 0)
                    + " says that steps are " + (steps ? "" : "not ") + "written down, and " + Settings.TRACE.name()
                    + "=" + set.toString().toLowerCase(Locale.ROOT) + " says otherwise; unset one of the two");
        }
        return steps ? STEPS : isSet ? set : COUNTERS;
    }
}
