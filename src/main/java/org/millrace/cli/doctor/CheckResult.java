package org.millrace.cli.doctor;

import java.util.List;

/**
 * Result of a check.
 *
 * @param summary one line: the version and location of the checked thing, the reason why it does not work, or the
 *                places where it was not found
 * @param advice  steps for the user, one line each; may be empty
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
