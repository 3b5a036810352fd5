package org.millrace.cli.doctor;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.millrace.cli.console.Host;

/**
 * What the user may take: open files (every TCP stream is one) and locked memory (which networks with RDMA register).
 */
final class LimitsCheck implements Check {

    private static final Path LIMITS = Path.of("/proc/self/limits");
    private static final long FEW_FILES = 1024;

    @Override
    public String subject() {
        return "limits";
    }

    @Override
    public CheckResult find() {
        Optional<String> files = soft("Max open files");
        Optional<String> locked = soft("Max locked memory");
        if (files.isEmpty() || locked.isEmpty()) {
            return CheckResult.missing(LIMITS.toString());
        }
        List<String> advice = new ArrayList<>();
        if (isNumber(files.get()) && Long.parseLong(files.get()) <= FEW_FILES) {
            advice.add("many ranks or streams need more open files: ulimit -n 65536");
        }
        if (isNumber(locked.get())) {
            advice.add("only a network with RDMA needs more locked memory: ulimit -l unlimited");
        }
        String lockedText = isNumber(locked.get()) ? Bytes.text(Long.parseLong(locked.get())) : locked.get();
        return CheckResult.works("open files " + files.get() + ", locked memory " + lockedText,
                advice.toArray(String[]::new));
    }

    private static boolean isNumber(String limit) {
        return !limit.equals("unlimited");
    }

    /** The file has columns of fixed width: name, soft limit, hard limit, unit. */
    private static Optional<String> soft(String name) {
        Pattern pattern = Pattern.compile(Pattern.quote(name) + "\\s+(\\S+)\\s.*");
        return Host.lines(LIMITS)
                .stream()
                .map(pattern::matcher)
                .filter(Matcher::matches)
                .map(matcher -> matcher.group(1))
                .findFirst();
    }
}
