package org.millrace.cli;

import java.util.List;

/**
 * What a check found.
 *
 * @param summary one line: for what works its version and place, for what does not the reason, for what is missing
 *                where it was looked for
 * @param advice  what to do, a line each; may be empty
 */
record CheckResult(State state, String summary, List<String> advice) {

    enum State {
        WORKS("ok"), UNUSABLE("UNUSABLE"), MISSING("not found");

        private final String label;

        State(String label) {
            this.label = label;
        }

        @Override
        public String toString() {
            return label;
        }
    }

    static CheckResult works(String summary, String... advice) {
        return new CheckResult(State.WORKS, summary, List.of(advice));
    }

    static CheckResult unusable(String reason, String... advice) {
        return new CheckResult(State.UNUSABLE, reason, List.of(advice));
    }

    static CheckResult missing(String places, String... advice) {
        return new CheckResult(State.MISSING, places, List.of(advice));
    }
}
