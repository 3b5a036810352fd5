package org.millrace.cli.console;

import java.time.Duration;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.millrace.config.Configuration;
import org.millrace.config.Setting;
import org.millrace.config.Settings;

/** Settings for JSON: each with its value, the text that says the same to Millrace, and where it came from. */
public final class SettingsJson {

    private static final double NANOS = 1e9;

    private SettingsJson() {}

    /** All settings, by name. */
    public static Map<String, Object> of(Configuration configuration) {
        Map<String, Object> settings = new LinkedHashMap<>();
        for (Setting<?> setting : Settings.all()) {
            Map<String, Object> entry = new LinkedHashMap<>();
            entry.put("value", setting.secret() ? null : value(configuration.get(setting)));
            entry.put("text", configuration.show(setting));
            entry.put("origin", configuration.origin(setting).toString());
            settings.put(setting.name(), entry);
        }
        return settings;
    }

    /** Sizes are bytes, times seconds, what is not set is null. */
    private static @Nullable Object value(Object value) {
        return switch (value) {
            case Boolean truth -> truth;
            case Number number -> number;
            case Duration time -> time.toNanos() / NANOS;
            case Optional<?> optional -> optional.map(SettingsJson::value).orElse(null);
            case Collection<?> several -> several.stream().map(SettingsJson::value).toList();
            default -> value.toString();
        };
    }
}
