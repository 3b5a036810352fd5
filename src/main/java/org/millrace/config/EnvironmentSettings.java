package org.millrace.config;

import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Settings as the plugin for libnccl reads them: from the environment alone, one by one, as most of what stands there
 * is for NCCL and for other programs. Variables that are NCCL's own are read as NCCL reads them.
 */
public final class EnvironmentSettings {

    /** What C's {@code strtoll} with base 0 takes for a number. */
    private static final Pattern NUMBER =
            Pattern.compile("\\s*([+-]?(?:0[xX]\\p{XDigit}+|0[0-7]*|[1-9][0-9]*)).*", Pattern.DOTALL);

    private final UnaryOperator<@Nullable String> environment;

    /**
     * Settings of an environment.
     *
     * @param environment the value of a variable, or null
     */
    public EnvironmentSettings(UnaryOperator<@Nullable String> environment) {
        this.environment = environment;
    }

    /**
     * {@return what a variable is set to, without surrounding blanks; empty if it is not set}
     *
     * @param name the variable
     */
    public String text(String name) {
        String text = environment.apply(name);
        return text == null ? "" : text.strip();
    }

    /**
     * {@return the value of a setting, or its default if it is not set}
     *
     * @param setting which one
     * @param <T>     what its values are
     * @throws ConfigurationException if what it is set to is not usable
     */
    public <T> T get(Setting<T> setting) {
        String text = text(setting.name());
        return text.isEmpty() ? setting.defaultValue() : setting.parse(setting.name(), text);
    }

    /**
     * {@return the value of a setting, with another in the place of one that is not usable}
     *
     * @param setting  which one
     * @param instead  the other value
     * @param words    what it means, in words that complete "Here "
     * @param complain takes the sentence that says so
     * @param <T>      what its values are
     */
    public <T> T get(Setting<T> setting, T instead, String words, Consumer<String> complain) {
        String text = text(setting.name());
        try {
            return text.isEmpty() ? setting.defaultValue() : setting.parse(setting.name(), text);
        } catch (ConfigurationException unusable) {
            complain.accept(unusable.getMessage() + ". Here " + words);
            return instead;
        }
    }

    /**
     * {@return a number in one of NCCL's own variables, read as NCCL reads it: what is no number is 0}
     *
     * @param name   the variable
     * @param absent what stands for one that is not set, or for a number of more than 64 bits
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
}
