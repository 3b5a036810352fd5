package org.millrace.cli.doctor;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.millrace.cuda.library.LibraryReport;

/** A native library: found and loaded, found but unusable, or nowhere. */
final class LibraryCheck implements Check {

    private final String subject;
    private final Supplier<Optional<CheckResult>> harm;
    private final Supplier<LibraryReport> report;

    /**
     * A check.
     *
     * @param subject what people call it
     * @param harm    why it must not be loaded in this process
     * @param report  loads it
     */
    LibraryCheck(String subject, Supplier<Optional<CheckResult>> harm, Supplier<LibraryReport> report) {
        this.subject = subject;
        this.harm = harm;
        this.report = report;
    }

    @Override
    public String subject() {
        return subject;
    }

    @Override
    public CheckResult find() {
        return harm.get().orElseGet(() -> of(report.get()));
    }

    private static CheckResult of(LibraryReport report) {
        if (report.problem() == null) {
            List<String> passed = report.setAside()
                    .stream()
                    .map(candidate -> "passed over, because it is broken: " + candidate)
                    .toList();
            return new CheckResult(CheckResult.State.WORKS, report.version() + ", " + report.path(), passed);
        }
        // The first sentence says what is the matter, the others what to do.
        List<String> sentences = new ArrayList<>(List.of(report.problem().split("(?<=[^.])\\. (?=[A-Z])")));
        String summary = (report.path() == null ? "" : report.path() + ": ") + sentences.removeFirst();
        return new CheckResult(report.missing() ? CheckResult.State.MISSING : CheckResult.State.UNUSABLE, summary,
                sentences);
    }
}
