package org.millrace.cli.base;

import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import org.millrace.MillraceException;
import picocli.CommandLine.Help;

/** Text of a failure for messages without a stack trace. */
public final class FailureText {

    private FailureText() {}

    /** Returns the prefix of messages, red on a terminal unless {@code NO_COLOR} is set. */
    public static String prefix() {
        Help.Ansi ansi = StatusLine.isTerminal(StatusLine.ERR) ? Help.Ansi.AUTO : Help.Ansi.OFF;
        return Help.defaultColorScheme(ansi).errorText("millrace:") + " ";
    }

    /** Returns the message of a failure, with the failure's type if the message alone is not enough. */
    public static String of(Throwable failure) {
        if (failure instanceof OutOfMemoryError) {
            return "memory ran out: " + failure.getMessage() + "; smaller sizes and fewer ranks need less";
        }
        if (failure instanceof FileSystemException file) {
            return switch (file) {
                case NoSuchFileException _ -> "there is no " + file.getFile();
                case AccessDeniedException _ -> "this user has no permission for " + file.getFile();
                case NotDirectoryException _ -> file.getFile() + " is not a directory";
                default -> file.getMessage();
            };
        }
        return isUnexpected(failure) ? failure.toString() : failure.getMessage();
    }

    /**
     * Returns whether a failure is unexpected. The user needs the stack trace of an unexpected failure to understand
     * it. Failures that Millrace reports on purpose have known types and a message.
     */
    public static boolean isUnexpected(Throwable failure) {
        return failure.getMessage() == null || !(failure instanceof MillraceException
                || failure instanceof IllegalArgumentException || failure instanceof FileSystemException);
    }
}
