package org.millrace.cli;

import org.millrace.MillraceException;

/** What is said of a failure when no stack trace is shown. */
final class FailureText {

    private FailureText() {}

    /** A failure in words: its message, with its type where the message alone says too little. */
    static String of(Throwable failure) {
        if (failure instanceof OutOfMemoryError) {
            return "memory ran out: " + failure.getMessage() + "; smaller sizes and fewer ranks need less";
        }
        return isUnexpected(failure) ? failure.toString() : failure.getMessage();
    }

    /** Whether only its stack trace explains it, as it is none that we report on purpose. */
    static boolean isUnexpected(Throwable failure) {
        return failure.getMessage() == null
                || !(failure instanceof MillraceException || failure instanceof IllegalArgumentException);
    }
}
