package org.millrace.cli.doctor;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.millrace.cli.base.FailureText;
import org.millrace.cli.base.Json;
import org.millrace.cli.base.Paragraph;
import org.millrace.cli.base.RunJson;
import org.millrace.cli.base.Version;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Setting;
import org.millrace.config.Settings;
import picocli.CommandLine.Help.Ansi;

/**
 * Results of doctor. The text output has one line for each check, printed as soon as the check's result is known. The
 * JSON output is printed at the end.
 */
final class DoctorReport {

    private static final String UNSET = "unset";

    private final PrintWriter out;
    private final boolean json;
    private final int width;
    private final Map<String, CheckResult> found = new LinkedHashMap<>();

    DoctorReport(PrintWriter out, boolean json, int width) {
        this.out = out;
        this.json = json;
        this.width = width;
        if (!json) {
            out.println("millrace " + Version.millrace());
        }
    }

    /** Runs a check and reports its result. Returns true if the check's subject is found and works. */
    boolean add(Check check) {
        CheckResult result;
        try {
            result = check.look().get();
        } catch (ConfigurationException refused) {
            result = CheckResult.unusable("not tried: see the settings below");
        } catch (RuntimeException | LinkageError failure) { // an exception must not prevent the other checks
            result = CheckResult.unusable("the check failed: " + FailureText.of(failure));
        }
        found.put(check.subject(), result);
        if (!json) {
            print(check.subject(), result);
        }
        return result.state() == CheckResult.State.WORKS;
    }

    private void print(String subject, CheckResult result) {
        String plain = String.format("%-16s %-10s ", subject, result.state());
        String style = switch (result.state()) {
            case WORKS -> "green";
            case UNUSABLE -> "bold,red";
            case MISSING -> "yellow";
        };
        String shown = Ansi.AUTO.string("@|" + style + " " + result.state() + "|@");
        out.println(Paragraph.wrap(plain, result.summary(), width)
                .replaceFirst(" " + result.state() + " ", Matcher.quoteReplacement(" " + shown + " ")));
        String advice = " ".repeat(plain.length()) + "> ";
        result.advice().forEach(line -> out.println(Paragraph.wrap(advice, line, width)));
        out.flush();
    }

    /** Returns a text that lists the given subjects that were checked and do not work. */
    String notWorking(Set<String> subjects) {
        return found.entrySet()
                .stream()
                .filter(entry -> subjects.contains(entry.getKey())
                        && entry.getValue().state() != CheckResult.State.WORKS)
                .map(Map.Entry::getKey)
                .collect(Collectors.joining(", "));
    }

    /** Ends the report. {@code configuration} is null if a setting is not usable. */
    void end(@Nullable Configuration configuration, boolean usable) {
        if (json) {
            out.print(Json.write(document(configuration, usable)));
        } else if (configuration != null) {
            settings(configuration);
        }
        out.flush();
    }

    private Map<String, Object> document(@Nullable Configuration configuration, boolean usable) {
        Map<String, Object> document = Json.object("millrace", Version.millrace(), "usable", usable);
        List<Object> checks = new ArrayList<>();
        found.forEach((subject, result) -> {
            Map<String, Object> check =
                    Json.object("subject", subject, "state", result.state().name().toLowerCase(Locale.ROOT), "summary",
                            result.summary(), "advice", result.advice());
            checks.add(check);
        });
        document.put("checks", checks);
        document.put("settings", configuration == null ? null : RunJson.settings(configuration));
        Map<String, Object> plugin = new LinkedHashMap<>();
        Settings.all()
                .stream()
                .filter(setting -> setting.part().ofThePlugin())
                .forEach(setting -> plugin.put(setting.name(), System.getenv(setting.name())));
        document.put("plugin_settings", plugin);
        return document;
    }

    private void settings(Configuration configuration) {
        out.println(Paragraph.wrap("",
                "settings, and where they come from (also Java system properties: NCCL_BUFFSIZE is nccl.buffsize)",
                width));
        settings(configuration, false);
        out.println("of the plugin for libnccl alone, and of the environment alone");
        settings(configuration, true);
    }

    private void settings(Configuration configuration, boolean ofThePlugin) {
        for (Setting<?> setting : Settings.all()) {
            if (setting.part().ofThePlugin() == ofThePlugin) {
                String value = ofThePlugin ? configuration.text(setting) : configuration.show(setting);
                out.printf("  %-32s %-10s %s%n", setting.name(), value.isEmpty() ? UNSET : value,
                        configuration.origin(setting));
                out.println(Paragraph.wrap("      ", setting.description(), width));
            }
        }
    }
}
