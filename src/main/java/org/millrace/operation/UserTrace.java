package org.millrace.operation;

import java.util.Arrays;
import java.util.stream.IntStream;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;

/**
 * Stack traces that begin at the program's call. The frames of Millrace above this call do not help the program. They
 * are kept if the log level of {@code org.millrace} is DEBUG.
 */
public final class UserTrace {

    private static final Logger LOG = LogManager.getLogger(UserTrace.class);

    private UserTrace() {}

    /** Removes the frames above the program's call, and returns the exception. */
    public static <T extends Throwable> T from(T thrown) {
        StackTraceElement[] frames = thrown.getStackTrace();
        if (!LOG.isDebugEnabled()) {
            IntStream.range(0, frames.length)
                    .filter(index -> isOfProgram(frames[index]))
                    .findFirst()
                    .ifPresent(first -> thrown.setStackTrace(Arrays.copyOfRange(frames, first, frames.length)));
        }
        return thrown;
    }

    /** Returns whether a frame belongs neither to Millrace nor to the JDK. */
    private static boolean isOfProgram(StackTraceElement frame) {
        @Nullable
        String module = frame.getModuleName();
        if (module != null && (module.startsWith("java.") || module.startsWith("jdk."))) {
            return false;
        }
        if (!frame.getClassName().startsWith("org.millrace.")) {
            return true;
        }
        try {
            // A program can have packages with the names of Millrace's packages, for instance in tests of Millrace.
            Class<?> type = Class.forName(frame.getClassName(), false, UserTrace.class.getClassLoader());
            return type.getProtectionDomain() != UserTrace.class.getProtectionDomain();
        } catch (ClassNotFoundException | LinkageError ofAnotherLoader) {
            return true;
        }
    }
}
