package org.millrace.config;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeSet;
import org.millrace.config.Configuration.Origin.Source;

/** Finds and parses values, and collects what is wrong with them so that everything can be reported at once. */
final class ConfigurationReader {

    private static final String UNKNOWN = "unknown setting: ";

    private final Map<String, String> environment;
    private final Properties properties;
    private final Map<String, String> overrides;
    private final List<String> refusals = new ArrayList<>();

    ConfigurationReader(Map<String, String> environment, Properties properties, Map<String, String> overrides) {
        this.environment = environment;
        this.properties = properties;
        this.overrides = overrides;
    }

    List<String> refusals() {
        return refusals;
    }

    void refuse(String sentence) {
        refusals.add(sentence);
    }

    /**
     * NCCL has many settings that are none of ours, so its names are only checked where they were given to us and to
     * nobody else: in the overrides.
     */
    void refuseUnknownNames() {
        List<String> names = Settings.all().stream().map(Setting::name).toList();
        List<String> propertyNames = Settings.all().stream().map(Setting::property).toList();
        refuseUnknown(overrides.keySet(), "", names, Source.OVERRIDE);
        refuseUnknown(properties.stringPropertyNames(), "millrace.", propertyNames, Source.PROPERTY);
        List<String> variables = new ArrayList<>(names);
        PluginSettings.all().forEach(setting -> variables.add(setting.name()));
        refuseUnknown(environment.keySet(), "MILLRACE_", variables, Source.ENVIRONMENT);
        if (refusals.stream().anyMatch(refusal -> refusal.startsWith(UNKNOWN) && !refusal.endsWith("?"))) {
            refuse("the settings there are: " + String.join(", ", names));
        }
    }

    private void refuseUnknown(Collection<String> given, String prefix, List<String> known, Source source) {
        for (String name : new TreeSet<>(given)) {
            if (name.startsWith(prefix) && !known.contains(name)) {
                String meant = NearestName.of(name, known).map(near -> "; did you mean " + near + "?").orElse("");
                refuse(UNKNOWN + new Configuration.Origin(source, name) + meant);
            }
        }
    }

    /** Where the strongest value of a setting is. */
    Configuration.Origin origin(Setting<?> setting) {
        if (isSet(overrides.get(setting.name()))) {
            return new Configuration.Origin(Source.OVERRIDE, setting.name());
        }
        if (isSet(properties.getProperty(setting.property()))) {
            return new Configuration.Origin(Source.PROPERTY, setting.property());
        }
        if (isSet(environment.get(setting.name()))) {
            return new Configuration.Origin(Source.ENVIRONMENT, setting.name());
        }
        return new Configuration.Origin(Source.DEFAULT, setting.name());
    }

    private static boolean isSet(String text) {
        return text != null && !text.isBlank();
    }

    /**
     * The value at the origin; empty at the default, and if the value is not usable, which is then among the refusals.
     */
    <T> Optional<T> value(Setting<T> setting, Configuration.Origin origin) {
        String text = switch (origin.source()) {
            case OVERRIDE -> overrides.get(origin.name());
            case PROPERTY -> properties.getProperty(origin.name());
            case ENVIRONMENT -> environment.get(origin.name());
            case DEFAULT -> null;
        };
        if (text == null) {
            return Optional.empty();
        }
        try {
            return Optional.of(setting.parse(origin, text));
        } catch (ConfigurationException unusable) {
            refuse(unusable.getMessage());
            return Optional.empty();
        }
    }
}
