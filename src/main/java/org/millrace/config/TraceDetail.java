package org.millrace.config;

/** How much of its connections a process records. */
public enum TraceDetail {
    /** Nothing. */
    OFF,
    /** Counters. */
    COUNTERS,
    /** Counters, and the last steps of each connection. */
    STEPS
}
