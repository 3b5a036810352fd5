package org.millrace.net.fault;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * How often each fault has happened in this process, on any of its networks. A fault that never happens has shown
 * nothing, and must not look like one that was survived: unless another part of the program says so, this process does
 * when it ends.
 */
public final class PlantedFaults {

    private static final Map<Fault, Long> HAPPENED = new LinkedHashMap<>();
    private static final Set<Fault> WATCHED = Collections.synchronizedSet(new LinkedHashSet<>());
    private static volatile boolean othersSay;
    private static boolean hooked;

    private PlantedFaults() {}

    static void happened(Fault fault) {
        synchronized (HAPPENED) {
            HAPPENED.merge(fault, 1L, Long::sum);
        }
    }

    /** How often each has happened so far: a copy, with those that have happened at all. */
    public static Map<Fault, Long> counts() {
        synchronized (HAPPENED) {
            return new LinkedHashMap<>(HAPPENED);
        }
    }

    /** Says on the error stream which of these did not happen, when the process ends. */
    public static void watch(List<Fault> planted) {
        WATCHED.addAll(planted);
        synchronized (WATCHED) {
            if (!hooked) {
                hooked = true;
                try {
                    Runtime.getRuntime()
                            .addShutdownHook(new Thread(PlantedFaults::sayWhatDidNotHappen, "planted-faults"));
                } catch (IllegalStateException ending) {
                    // The process ends already: a fault that is planted now is not reported.
                }
            }
        }
    }

    /**
     * Leaves it to the caller to say so: to a program that knows of several processes, in one of which a fault may have
     * happened.
     */
    public static void leaveToCaller() {
        othersSay = true;
    }

    private static void sayWhatDidNotHappen() {
        if (othersSay) {
            return;
        }
        Set<Fault> happened = counts().keySet();
        synchronized (WATCHED) {
            for (Fault fault : WATCHED) {
                if (!happened.contains(fault)) {
                    System.err.println("millrace: " + missed(fault));
                }
            }
        }
    }

    /** What to tell the user of a fault that did not happen: what was planted, and what it waited for. */
    public static String missed(Fault fault) {
        return "the planted fault " + fault.text()
                + " (MILLRACE_FAULT) did not happen, so that this run says nothing about it: it needs " + fault.moment()
                + ", and there was none";
    }
}
