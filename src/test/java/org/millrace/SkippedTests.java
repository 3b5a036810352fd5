package org.millrace;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;

/**
 * Prints the reasons for skipped tests, each reason once in a build. A test report counts skipped tests, but does not
 * show the missing requirement. JUnit finds this class as a service.
 */
public final class SkippedTests implements TestExecutionListener {

    /** Identifier of a build, which all test JVMs of the build share. The next build has another identifier. */
    private static final String BUILD =
            System.getProperty("skipped.tests.build", Long.toString(ProcessHandle.current().pid()));
    private static final Path SAID = Path.of("target", "skipped");

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        if (result.getStatus() == TestExecutionResult.Status.ABORTED) {
            String reason = result.getThrowable().map(Throwable::getMessage).orElse("for no reason that is told");
            if (isNew(reason)) {
                System.out.println("[WARNING] skipped, here and wherever it is needed: "
                        + reason.replaceFirst("^Assumption failed: ", ""));
            }
        }
    }

    private static boolean isNew(String reason) {
        try {
            Path file = Files.createDirectories(SAID).resolve(Integer.toHexString(reason.hashCode()));
            boolean isNew = !Files.exists(file) || !Files.readString(file).equals(BUILD);
            Files.writeString(file, BUILD);
            return isNew;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
