package org.millrace.cli.doctor;

import java.util.List;

/**
 * What a check found.
 *
 * @param state   found and working, found but unusable, or not found
 * @param summary one line: for what works its version and place, for what does not the reason, for what is missing
 *                where it was looked for
 * @param advice  what to do, a line each; may be empty
 */
record CheckResult(State state, String summary, List<String> advice) {

    /** The three things that can be said of anything. */
    enum State {
        /** Found, and working. */
        WORKS("ok"),
        /** Found, but unusable. */
        UNUSABLE("UNUSABLE"),
        /** Not found. */
        MISSING("not found");

        private final String label;

        State(String label) {
            this.label = label;
        }

        @Override
        public String toString() {
            return label;
        }
    }

    /** Found, and working. */
    static CheckResult works(String summary, String... advice) {
        return new CheckResult(State.WORKS, summary, List.of(advice));
    }

    /** Found, but unusable. */
    static CheckResult unusable(String reason, String... advice) {
        return new CheckResult(State.UNUSABLE, reason, List.of(advice));
    }

    /** Not found. */
    static CheckResult missing(String places, String... advice) {
        return new CheckResult(State.MISSING, places, List.of(advice));
    }
}
