package org.millrace.config;

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
     * {@return what may be written, in words that complete "allowed: ", for instance {@code "a whole number from 1 to
     * 64"}}
     */
    String allowed();
}
