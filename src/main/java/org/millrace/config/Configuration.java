package org.millrace.config;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;

/**
 * The value of every setting, and where it came from. Immutable.
 *
 * <p>
 * An override wins over a system property, that over an environment variable, and that over the default. An empty value
 * counts as none, as in NCCL.
 */
public final class Configuration {

    private record Entry<T>(T value, Origin origin) {
    }

    private final Map<Setting<?>, Entry<?>> entries;

    Configuration(ConfigurationReader reader) {
        Map<Setting<?>, Entry<?>> read = new HashMap<>();
        for (Setting<?> setting : Settings.all()) {
            read.put(setting, entry(setting, reader));
        }
        entries = Map.copyOf(read);
        Optional<Integer> least = get(Settings.MIN_CHANNELS);
        Optional<Integer> most = get(Settings.MAX_CHANNELS);
        if (least.isPresent() && most.isPresent() && least.get() > most.get()) {
            reader.refuse(origin(Settings.MIN_CHANNELS) + "=" + least.get() + " is more than "
                    + origin(Settings.MAX_CHANNELS) + "=" + most.get() + "; raise the one or lower the other");
        }
        try {
            traceDetail();
        } catch (ConfigurationException contradiction) {
            reader.refuse(contradiction.getMessage());
        }
    }

    /** {@return what is traced, by {@link Settings#TRACE} and {@link Settings#PROXY_TRACE}} */
    public TraceDetail traceDetail() {
        return TraceDetail.of(get(Settings.TRACE), origin(Settings.TRACE).source() != Origin.Source.DEFAULT,
                get(Settings.PROXY_TRACE));
    }

    private static <T> Entry<T> entry(Setting<T> setting, ConfigurationReader reader) {
        Origin origin = reader.origin(setting);
        return new Entry<>(reader.value(setting, origin).orElse(setting.defaultValue()), origin);
    }

    /**
     * {@return the configuration that this process's environment and system properties say}
     *
     * @param overrides values that win over both; names are those of the environment variables
     * @throws ConfigurationException if a {@code MILLRACE_*} or {@code millrace.*} name or an override is unknown, or a
     *                                value is not usable; the message lists everything that is wrong and what is
     *                                allowed
     */
    public static Configuration load(Map<String, String> overrides) {
        return load(System.getenv(), System.getProperties(), overrides);
    }

    /**
     * {@return the configuration that a given environment and given properties say}
     *
     * @param environment the environment variables, of which those with other prefixes than {@code MILLRACE_} and
     *                    {@code NCCL_} are ignored
     * @param properties  the system properties, of which those with other prefixes than {@code millrace.} and
     *                    {@code nccl.} are ignored
     * @param overrides   values that win over both
     * @throws ConfigurationException as {@link #load(Map)}
     */
    public static Configuration load(Map<String, String> environment, Properties properties,
            Map<String, String> overrides) {
        ConfigurationReader reader = new ConfigurationReader(environment, properties, overrides);
        reader.refuseUnknownNames();
        Configuration configuration = new Configuration(reader);
        List<String> refusals = reader.refusals();
        if (!refusals.isEmpty()) {
            throw new ConfigurationException(String.join(System.lineSeparator(), refusals));
        }
        return configuration;
    }

    /**
     * {@return the value of a setting}
     *
     * @param setting one of {@link Settings}
     * @param <T>     what its values are
     */
    @SuppressWarnings("unchecked") // entry() pairs a setting with a value of its own type
    public <T> T get(Setting<T> setting) {
        return (T) entries.get(setting).value();
    }

    /**
     * {@return where the value of a setting came from}
     *
     * @param setting one of {@link Settings}
     */
    public Origin origin(Setting<?> setting) {
        return entries.get(setting).origin();
    }

    /**
     * {@return the value of a setting as it may be shown to people: not a secret's}
     *
     * @param setting one of {@link Settings}
     * @param <T>     what its values are
     */
    public <T> String show(Setting<T> setting) {
        return setting.show(get(setting));
    }

    /**
     * Where the value of a setting came from.
     *
     * @param source the kind of place
     * @param name   what the value is called there
     */
    public record Origin(Source source, String name) {

        /** The places a value can come from, strongest last. */
        public enum Source {
            /** Nobody set it. */
            DEFAULT("default"),
            /** An environment variable. */
            ENVIRONMENT("environment"),
            /** A Java system property. */
            PROPERTY("property"),
            /** The program or the command line. */
            OVERRIDE("override");

            private final String label;

            Source(String label) {
                this.label = label;
            }
        }

        /** {@return the origin in words, for instance {@code "environment NCCL_BUFFSIZE"}} */
        @Override
        public String toString() {
            return source == Source.DEFAULT ? source.label : source.label + " " + name;
        }
    }
}
