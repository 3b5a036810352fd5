package org.millrace.gpu;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.millrace.config.Configuration;
import org.millrace.config.Origin;
import org.millrace.config.Setting;
import org.millrace.config.Settings;

/**
 * Settings as environment variables: libnccl, and the plugin that it loads, know of no system properties and of no
 * sizes with units.
 */
final class NcclVariables {

    private NcclVariables() {}

    /** Those that somebody has set. */
    static Map<String, String> of(Configuration configuration) {
        Map<String, String> variables = new LinkedHashMap<>();
        for (Setting<?> setting : Settings.all()) {
            if (configuration.origin(setting).source() != Origin.Source.DEFAULT && !setting.secret()) {
                variables.put(setting.name(), text(setting, configuration));
            }
        }
        return variables;
    }

    private static String text(Setting<?> setting, Configuration configuration) {
        Object value =
                configuration.get(setting) instanceof Optional<?> optional && optional.isPresent() ? optional.get()
                        : configuration.get(setting);
        return switch (value) {
            case Number number -> number.toString();
            case Boolean flag -> flag ? "1" : "0";
            default -> configuration.show(setting);
        };
    }
}
