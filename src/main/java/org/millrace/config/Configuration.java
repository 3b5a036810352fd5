package org.millrace.config;

import java.util.ArrayList;
import java.util.Collection;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.millrace.config.Configuration.Origin.Source;
import org.millrace.config.Settings.Kernels;

/**
 * The values of all settings, each with its origin. This class is the only reader of settings. Immutable.
 *
 * <p>
 * An override takes precedence over a system property, a system property over an environment variable, and an
 * environment variable over the default. An empty value counts as not set, as in NCCL.
 */
public final class Configuration {

    private static final String UNKNOWN = "unknown setting: ";
    /** Text that begins with a number. The number has a format that C's {@code strtoll} reads with base 0. */
    private static final Pattern NUMBER =
            Pattern.compile("\\s*([+-]?(?:0[xX]\\p{XDigit}+|0[0-7]*|[1-9][0-9]*)).*", Pattern.DOTALL);
    /** Maximum number of TCP streams of a connection, more than any network card or operating system needs. */
    private static final int MAX_STREAMS = 16;

    /**
     * A value with its origin.
     *
     * @param text    text of the value, without surrounding blanks; empty for the default
     * @param value   the parsed value; null if the text is not usable
     * @param refusal reason why the text is not usable; null if it is usable
     */
    private record Entry(Origin origin, String text, @Nullable Object value, @Nullable ConfigurationException refusal) {

        static <T> Entry of(Setting<T> setting, Origin origin, Object where, String text) {
            try {
                return new Entry(origin, text, text.isEmpty() ? setting.defaultValue() : setting.parse(where, text),
                        null);
            } catch (ConfigurationException unusable) {
                return new Entry(origin, text, null, unusable);
            }
        }
    }

    private final UnaryOperator<@Nullable String> environment;
    /**
     * Entries of all settings. The keys are compared by identity. With a comparison by content, the JVM would have to
     * link the {@code hashCode} methods of records. At the start of a process, this linking takes longer than all other
     * work of this class.
     */
    private final Map<Setting<?>, Entry> entries = new IdentityHashMap<>();

    private Configuration(UnaryOperator<@Nullable String> environment) {
        this.environment = environment;
    }

    /**
     * {@return the configuration from this process's environment and system properties}
     *
     * @param overrides values that take precedence over environment and properties, by the names of the environment
     *                  variables
     * @throws ConfigurationException if a {@code MILLRACE_*} or {@code millrace.*} name or an override is unknown, or a
     *                                value is not usable; the message lists all errors and the allowed values
     */
    public static Configuration load(Map<String, String> overrides) {
        return load(System.getenv(), System.getProperties(), overrides);
    }

    /**
     * {@return the configuration from the given environment and properties}
     *
     * @param environment environment variables; those without the prefixes {@code MILLRACE_} and {@code NCCL_} are
     *                    ignored
     * @param properties  system properties; those without the prefixes {@code millrace.} and {@code nccl.} are ignored
     * @param overrides   values that take precedence over environment and properties
     * @throws ConfigurationException for the reasons listed at {@link #load(Map)}
     */
    public static Configuration load(Map<String, String> environment, Properties properties,
            Map<String, String> overrides) {
        Configuration read = new Configuration(environment::get);
        List<String> refusals = unknownNames(environment, properties, overrides);
        for (Setting<?> setting : Settings.all()) {
            if (setting.part().ofThePlugin()) {
                read.readEnvironment(setting);
            } else {
                read.read(setting, properties, overrides);
                Optional.ofNullable(read.entries.get(setting).refusal)
                        .ifPresent(refusal -> refusals.add(refusal.getMessage()));
            }
        }
        read.contradictions(refusals::add);
        if (!refusals.isEmpty()) {
            throw new ConfigurationException(String.join(System.lineSeparator(), refusals));
        }
        return read;
    }

    /**
     * {@return the configuration of the plugin for libnccl, read from the environment only} Most variables of the
     * environment belong to NCCL and to other programs, so unknown names are ignored. A value that is not usable is
     * refused when {@link #get(Setting)} reads it.
     *
     * @param environment returns the value of a variable, or null
     */
    public static Configuration ofPlugin(UnaryOperator<@Nullable String> environment) {
        Configuration read = new Configuration(environment);
        Settings.all().forEach(read::readEnvironment);
        return read;
    }

    private void read(Setting<?> setting, Properties properties, Map<String, String> overrides) {
        Found found = find(setting, environment, properties, overrides);
        entries.put(setting, Entry.of(setting, found.origin, found.origin.named(), found.text));
    }

    private static Found find(Setting<?> setting, UnaryOperator<@Nullable String> environment, Properties properties,
            Map<String, String> overrides) {
        Found found = new Found(new Origin(Source.OVERRIDE, setting.name()), strip(overrides.get(setting.name())));
        if (found.text.isEmpty()) {
            found = new Found(new Origin(Source.PROPERTY, setting.property()),
                    strip(properties.getProperty(setting.property())));
        }
        if (found.text.isEmpty()) {
            found = new Found(new Origin(Source.ENVIRONMENT, setting.name()), strip(environment.apply(setting.name())));
        }
        return found.text.isEmpty() ? new Found(new Origin(Source.DEFAULT, setting.name()), "") : found;
    }

    /**
     * {@return the text of one setting} Used by code that runs before all settings are read and checked.
     *
     * @param setting   setting to find
     * @param overrides values that take precedence over properties and environment
     */
    public static Found find(Setting<?> setting, Map<String, String> overrides) {
        return find(setting, System.getenv()::get, System.getProperties(), overrides);
    }

    /**
     * The text of a setting.
     *
     * @param origin origin of the text
     * @param text   text as written, without surrounding blanks; empty if the setting is not set
     */
    public record Found(Origin origin, String text) {
    }

    private void readEnvironment(Setting<?> setting) {
        String text = variable(setting.name());
        Origin origin = new Origin(text.isEmpty() ? Source.DEFAULT : Source.ENVIRONMENT, setting.name());
        entries.put(setting, Entry.of(setting, origin, setting.name(), text));
    }

    private static String strip(@Nullable String text) {
        return text == null ? "" : text.strip();
    }

    /**
     * Returns a message for each unknown name. NCCL has many settings that Millrace does not use. Unknown names of NCCL
     * are therefore refused only in the overrides, which are meant for Millrace alone.
     */
    private static List<String> unknownNames(Map<String, String> environment, Properties properties,
            Map<String, String> overrides) {
        List<Setting<?>> ours = Settings.ofPrograms();
        List<String> names = ours.stream().map(Setting::name).toList();
        List<String> refusals = new ArrayList<>();
        unknown(overrides.keySet(), "", names, Source.OVERRIDE, refusals);
        unknown(properties.stringPropertyNames(), "millrace.", ours.stream().map(Setting::property).toList(),
                Source.PROPERTY, refusals);
        unknown(environment.keySet(), "MILLRACE_", Settings.all().stream().map(Setting::name).toList(),
                Source.ENVIRONMENT, refusals);
        if (refusals.stream().anyMatch(refusal -> !refusal.endsWith("?"))) {
            refusals.add("known settings: " + String.join(", ", names));
        }
        return refusals;
    }

    private static void unknown(Collection<String> given, String prefix, List<String> known, Source source,
            List<String> refusals) {
        for (String name : new TreeSet<>(given)) {
            if (name.startsWith(prefix) && !known.contains(name)) {
                String meant = NearestName.of(name, known).map(near -> "; did you mean " + near + "?").orElse("");
                refusals.add(UNKNOWN + new Origin(source, name).named() + meant);
            }
        }
    }

    /** Reports values that are usable separately but contradict each other. */
    private void contradictions(Consumer<String> refuse) {
        Entry least = entries.get(Settings.MIN_CHANNELS);
        Entry most = entries.get(Settings.MAX_CHANNELS);
        if (least.refusal == null && most.refusal == null
                && get(Settings.MIN_CHANNELS).orElse(0) > get(Settings.MAX_CHANNELS).orElse(Integer.MAX_VALUE)) {
            refuse.accept(least.origin.named() + "=" + get(Settings.MIN_CHANNELS).get() + " is more than "
                    + most.origin.named() + "=" + get(Settings.MAX_CHANNELS).get()
                    + "; raise the one or lower the other");
        }
        if (entries.get(Settings.TRACE).refusal == null && get(Settings.TRACE) == Settings.TraceDetail.OFF
                && isSet(Settings.RECORD)) {
            refuse.accept(origin(Settings.RECORD).named() + " is set, and " + origin(Settings.TRACE).named()
                    + "=off: steps are recorded where they are traced; unset one of the two");
        }
        if (entries.get(Settings.TRACE).refusal == null && entries.get(Settings.PROXY_TRACE).refusal == null) {
            try {
                traceDetail();
            } catch (ConfigurationException contradiction) {
                refuse.accept(contradiction.getMessage());
            }
        }
    }

    /**
     * {@return the value of a setting}
     *
     * @param setting one of {@link Settings}
     * @param <T>     type of the setting's values
     * @throws ConfigurationException if the value is not usable and {@link #load(Map)} has not refused it
     */
    @SuppressWarnings("unchecked") // Entry.of() pairs a setting with a value of its type
    public <T> T get(Setting<T> setting) {
        Entry entry = entries.get(setting);
        if (entry.refusal != null) {
            throw new ConfigurationException(entry.refusal.getMessage());
        }
        return (T) entry.value;
    }

    /**
     * {@return the value of a setting, or a replacement if the value is not usable}
     *
     * @param setting  setting to read
     * @param instead  the replacement
     * @param words    description of the replacement's effect. It completes a sentence that begins with "Here ".
     * @param complain receives a text that reports the unusable value and the effect of the replacement
     * @param <T>      type of the setting's values
     */
    public <T> T get(Setting<T> setting, T instead, String words, Consumer<String> complain) {
        try {
            return get(setting);
        } catch (ConfigurationException unusable) {
            complain.accept(unusable.getMessage() + ". Here " + words);
            return instead;
        }
    }

    /**
     * {@return the value of a setting; empty if the setting is not set} Used for settings without a common default. The
     * code that reads such a setting determines its default.
     *
     * @param setting one of {@link Settings}
     * @param <T>     type of the setting's values
     */
    public <T> Optional<T> ifSet(Setting<T> setting) {
        return isSet(setting) ? Optional.of(get(setting)) : Optional.empty();
    }

    /** {@return whether a setting was set} If the setting was not set, its value is the default. */
    public boolean isSet(Setting<?> setting) {
        return origin(setting).source() != Source.DEFAULT;
    }

    /** {@return the origin of a setting's value} */
    public Origin origin(Setting<?> setting) {
        return entries.get(setting).origin();
    }

    /** {@return the text of a setting as written; empty if it is not set} */
    public String text(Setting<?> setting) {
        return entries.get(setting).text();
    }

    /**
     * {@return the value of a setting as text for people; a placeholder for a secret}
     *
     * @param setting one of {@link Settings}
     * @param <T>     type of the setting's values
     */
    public <T> String show(Setting<T> setting) {
        return setting.show(get(setting));
    }

    /**
     * {@return the text of an environment variable of NCCL, without surrounding blanks; empty if it is not set}
     *
     * @param name name of the variable
     */
    public String variable(String name) {
        return strip(environment.apply(name));
    }

    /**
     * {@return the number in an environment variable of NCCL, read as NCCL reads it: text that is not a number counts
     * as 0}
     *
     * @param name   name of the variable
     * @param absent result if the variable is not set, or if its number does not fit into 64 bits
     */
    public long ncclNumber(String name, long absent) {
        String text = environment.apply(name);
        if (text == null || text.isEmpty()) {
            return absent;
        }
        Matcher matcher = NUMBER.matcher(text);
        try {
            return matcher.matches() ? Long.decode(matcher.group(1)) : 0;
        } catch (NumberFormatException tooLarge) {
            return absent;
        }
    }

    // Methods for values that several names determine.

    /**
     * {@return the identity of the run, from {@link Settings#RUN_ID} or a variable of the launcher; empty if none is
     * set} The text "none" does not identify a run, because torchrun uses it by default for every run.
     */
    public String runId() {
        return ifSet(Settings.RUN_ID).orElseGet(() -> Settings.RUN_ID.aliases()
                .stream()
                .map(this::variable)
                .filter(id -> !id.isEmpty() && !id.equals("none"))
                .findFirst()
                .orElse(""));
    }

    /**
     * {@return the amount of tracing, from {@link Settings#TRACE} and {@link Settings#PROXY_TRACE}}
     *
     * @throws ConfigurationException if the two settings contradict each other
     */
    public Settings.TraceDetail traceDetail() {
        Settings.TraceDetail detail = get(Settings.TRACE);
        boolean isSet = isSet(Settings.TRACE);
        Optional<Boolean> proxyTrace = get(Settings.PROXY_TRACE);
        if (proxyTrace.isEmpty()) {
            return detail;
        }
        boolean steps = proxyTrace.get();
        if (isSet && steps != (detail == Settings.TraceDetail.STEPS)) {
            throw new ConfigurationException(Settings.PROXY_TRACE.name() + "=" + (steps ? 1 : 0)
                    + " requests that steps are " + (steps ? "" : "not ") + "recorded, and " + Settings.TRACE.name()
                    + "=" + detail.toString().toLowerCase(Locale.ROOT)
                    + " requests the opposite; unset one of the two");
        }
        return steps ? Settings.TraceDetail.STEPS : isSet ? detail : Settings.TraceDetail.COUNTERS;
    }

    /**
     * {@return the location of the kernels that gather received data from the bounce buffer in a program with libnccl}
     * Either {@link Settings#UNPACK} or {@link Settings#NET_DEVICE_UNPACK} determines the location. Documents about
     * NCCL's device use the second name.
     *
     * @throws ConfigurationException if the two settings contradict each other
     */
    public Kernels unpackingKernels() {
        Kernels ours = get(Settings.UNPACK);
        Optional<Boolean> theirs = get(Settings.NET_DEVICE_UNPACK);
        boolean oursIsSet = isSet(Settings.UNPACK);
        if (theirs.isEmpty() || oursIsSet && theirs.get() == (ours != Kernels.NONE)) {
            return ours;
        }
        if (oursIsSet) {
            throw new ConfigurationException(Settings.NET_DEVICE_UNPACK.name() + "=" + text(Settings.NET_DEVICE_UNPACK)
                    + " and " + Settings.UNPACK.name() + "=" + text(Settings.UNPACK)
                    + " contradict each other; unset one of the two");
        }
        return theirs.get() ? Kernels.GPU : Kernels.NONE;
    }

    /** {@return the name and the value of the setting that determines {@link #unpackingKernels}} */
    public String unpackingText() {
        Setting<?> said = isSet(Settings.UNPACK) ? Settings.UNPACK : Settings.NET_DEVICE_UNPACK;
        return said.name() + "=" + text(said);
    }

    /**
     * {@return the number of TCP streams of a connection under libnccl} The number is the value of
     * {@link Settings#SOCKET_STREAMS}. If this setting is not set, the number is {@code NCCL_SOCKET_NTHREADS} times
     * {@code NCCL_NSOCKS_PERTHREAD}, limited to the range from 1 to 16.
     */
    public int streamsUnderNccl() {
        return get(Settings.SOCKET_STREAMS).orElseGet(() -> Math
                .clamp(ncclNumber("NCCL_SOCKET_NTHREADS", 1) * ncclNumber("NCCL_NSOCKS_PERTHREAD", 1), 1, MAX_STREAMS));
    }

    /**
     * Origin of a setting's value.
     *
     * @param source kind of origin
     * @param name   name of the variable, property or argument
     */
    public record Origin(Source source, String name) {

        /** Kinds of origins, in ascending order of precedence. */
        public enum Source {
            /** The setting is not set anywhere, so the default applies. */
            DEFAULT("default"),
            /** An environment variable. */
            ENVIRONMENT("environment"),
            /** A Java system property. */
            PROPERTY("property"),
            /** An argument of the program or the command line. */
            OVERRIDE("argument");

            private final String label;

            Source(String label) {
                this.label = label;
            }
        }

        /**
         * Returns the origin as text for messages. For an argument, returns only its name, because the program itself
         * passed the argument.
         */
        String named() {
            return source == Source.OVERRIDE ? name : toString();
        }

        /** {@return the origin as text, for instance {@code "environment NCCL_BUFFSIZE"}} */
        @Override
        public String toString() {
            return source == Source.DEFAULT ? source.label : source.label + " " + name;
        }
    }
}
