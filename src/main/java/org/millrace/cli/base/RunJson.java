package org.millrace.cli.base;

import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.millrace.config.Configuration;
import org.millrace.config.Setting;
import org.millrace.config.Settings;

/** Environment and settings of a run, for its JSON document. */
public final class RunJson {

    private static final double NANOS = 1e9;

    private RunJson() {}

    public static Map<String, Object> environment() {
        return Json.object("millrace", Version.millrace(), "time",
                Instant.now().truncatedTo(ChronoUnit.SECONDS).toString(), "host", Host.name(), "kernel", Host.kernel(),
                "java", Runtime.version().toString(), "java_vendor", System.getProperty("java.vendor"), "cores",
                Runtime.getRuntime().availableProcessors(), "processor",
                Host.field("/proc/cpuinfo", "model name").orElse(null));
    }

    /**
     * Returns all settings by name. Each entry has the setting's value, the value's origin, and a text that Millrace
     * parses to this value.
     */
    public static Map<String, Object> settings(Configuration configuration) {
        Map<String, Object> settings = new LinkedHashMap<>();
        for (Setting<?> setting : Settings.ofPrograms()) {
            Map<String, Object> entry =
                    Json.object("value", setting.secret() ? null : value(configuration.get(setting)), "text",
                            configuration.show(setting), "origin", configuration.origin(setting).toString());
            settings.put(setting.name(), entry);
        }
        return settings;
    }

    /** Converts a value: a size to bytes, a time to seconds, and an unset value to null. */
    private static @Nullable Object value(Object value) {
        return switch (value) {
            case Boolean truth -> truth;
            case Number number -> number;
            case Duration time -> time.toNanos() / NANOS;
            case Optional<?> optional -> optional.map(RunJson::value).orElse(null);
            case Collection<?> several -> several.stream().map(RunJson::value).toList();
            default -> value.toString();
        };
    }
}
