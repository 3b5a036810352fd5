package org.millrace.config;

import java.util.List;
import java.util.Locale;

/**
 * A setting: a row of the table of {@link Settings}.
 *
 * @param part         part that it belongs to
 * @param name         name of the environment variable
 * @param type         format of values, and the allowed ones
 * @param defaultValue value if the setting is not set
 * @param description  one line for people
 * @param aliases      other variables with the same meaning, by rules of {@link Configuration}
 * @param secret       whether the value must never be shown
 * @param <T>          type of a value in the program
 */
public record Setting<T>(Settings.Part part, String name, ValueType<T> type, T defaultValue, String description,
        List<String> aliases, boolean secret) {

    /**
     * {@return the Java system property with the same meaning, for instance {@code "millrace.nccl.library"} for
     * {@code MILLRACE_NCCL_LIBRARY}}
     */
    public String property() {
        return name.toLowerCase(Locale.ROOT).replace('_', '.');
    }

    /**
     * Parses a value.
     *
     * @param where name of the value at its origin
     * @param text  text of the value
     * @throws ConfigurationException if it is not usable; the message states the allowed values
     */
    T parse(Object where, String text) {
        try {
            return type.parse(text);
        } catch (IllegalArgumentException unusable) {
            String shown = secret ? "(not shown)" : text;
            throw new ConfigurationException(
                    where + "=" + shown + " is not usable; allowed: " + type.allowed() + ". It is: " + description);
        }
    }

    /**
     * {@return a value as text for people; a placeholder if this is a secret that is set}
     *
     * @param value a value of this setting
     */
    public String show(T value) {
        return secret && !value.equals(defaultValue) ? "(hidden)" : type.format(value);
    }

    /**
     * Format of the values of a setting or of an option of the command line.
     *
     * @param <T> type of a value in the program
     */
    public interface ValueType<T> {

        /**
         * {@return the value of a text}
         *
         * @param text the user's text, without surrounding blanks, not empty
         * @throws IllegalArgumentException if it is not {@link #allowed()}
         */
        T parse(String text);

        /**
         * {@return a value as text that {@link #parse} accepts}
         *
         * @param value a value of this type
         */
        String format(T value);

        /**
         * {@return a description of the allowed texts, in words that complete "allowed: ", for instance
         * {@code "a whole number from 1 to 64"}}
         */
        String allowed();
    }
}
