package org.millrace;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;

/**
 * Says why tests are skipped, each reason once in a build: a report counts what is skipped, and does not say what the
 * machine lacks. Found by JUnit as a service.
 */
public final class SkippedTests implements TestExecutionListener {

    /** The same in all JVMs that run tests of a build, and another in the next. */
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
