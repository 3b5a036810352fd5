package org.millrace.config;

import java.util.List;
import java.util.Locale;

/**
 * Something that can be set: a row of the table of {@link Settings}.
 *
 * @param part         what it belongs to
 * @param name         the environment variable
 * @param type         how values are written, and which are allowed
 * @param defaultValue the value if nobody sets it
 * @param description  one line for people
 * @param aliases      other variables that say the same, by rules of {@link Configuration}
 * @param secret       whether the value must never be shown
 * @param <T>          what a value is in the program
 */
public record Setting<T>(Settings.Part part, String name, ValueType<T> type, T defaultValue, String description,
        List<String> aliases, boolean secret) {

    /**
     * {@return the Java system property of the same meaning, for instance {@code "millrace.nccl.library"} for {@code
     * MILLRACE_NCCL_LIBRARY}}
     */
    public String property() {
        return name.toLowerCase(Locale.ROOT).replace('_', '.');
    }

    /**
     * Reads a value.
     *
     * @param where what it is called where it was found
     * @param text  what stands there
     * @throws ConfigurationException if it is not usable: the message says what is allowed
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
     * {@return a value as it may be shown to people: a placeholder if this is a secret that is set}
     *
     * @param value a value of this setting
     */
    public String show(T value) {
        return secret && !value.equals(defaultValue) ? "(hidden)" : type.format(value);
    }

    /**
     * How the values of a setting, or of an option of the command line, are written.
     *
     * @param <T> what a value is in the program
     */
    public interface ValueType<T> {

        /**
         * {@return the value that a text says}
         *
         * @param text what the user wrote, without surrounding blanks, not empty
         * @throws IllegalArgumentException if it is none of those that are {@link #allowed()}
         */
        T parse(String text);

        /**
         * {@return a value as text that {@link #parse} reads again}
         *
         * @param value a value of this type
         */
        String format(T value);

        /**
         * {@return what may be written, in words that complete "allowed: ", for instance
         * {@code "a whole number from 1 to
         * 64"}}
         */
        String allowed();
    }
}
