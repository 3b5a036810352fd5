package org.millrace.config;

import java.util.List;
import java.util.Locale;

/**
 * A setting: a row of the table of {@link Settings}.
 *
 * @param part         part of Millrace that the setting belongs to
 * @param name         name of the environment variable
 * @param type         format of the values, and the allowed values
 * @param defaultValue value if the setting is not set
 * @param description  one line for people
 * @param aliases      other variables with the same meaning; {@link Configuration} defines how they are combined
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
     * @param where origin of the value, for the message
     * @param text  text of the value
     * @throws ConfigurationException if the text is not usable; the message states the allowed values
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
     * {@return a value as text for people; a placeholder if the setting is secret and the value is not the default}
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
         * {@return the value that a text represents}
         *
         * @param text the user's text, without surrounding blanks, not empty
         * @throws IllegalArgumentException if the text is not {@link #allowed()}
         */
        T parse(String text);

        /**
         * {@return a value as text that {@link #parse} accepts}
         *
         * @param value a value of this type
         */
        String format(T value);

        /**
         * {@return a description of the allowed texts, which follows the text "allowed: " in a message, for instance
         * {@code "a whole number from 1 to 64"}}
         */
        String allowed();
    }
}
