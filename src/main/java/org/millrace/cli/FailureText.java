package org.millrace.cli;

import org.millrace.MillraceException;

/** Text of a failure for messages without a stack trace. */
final class FailureText {

    private FailureText() {}

    /** Returns the message of a failure, with its type if the message alone is too short. */
    static String of(Throwable failure) {
        if (failure instanceof OutOfMemoryError) {
            return "memory ran out: " + failure.getMessage() + "; smaller sizes and fewer ranks need less";
        }
        return isUnexpected(failure) ? failure.toString() : failure.getMessage();
    }

    /**
     * Returns whether a failure is unexpected: Millrace does not report its kind on purpose. Only its stack trace
     * explains it.
     */
    static boolean isUnexpected(Throwable failure) {
        return failure.getMessage() == null
                || !(failure instanceof MillraceException || failure instanceof IllegalArgumentException);
    }
}
