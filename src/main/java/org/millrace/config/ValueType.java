package org.millrace.config;

/**
 * How the values of a setting, or of an option of the command line, are written.
 *
 * @param <T> what a value is in the program
 */
public interface ValueType<T> {

    /**
     * Reads a value.
     *
     * @param text what the user wrote, without surrounding blanks, not empty
     * @return the value
     * @throws IllegalArgumentException if it is none of those that are {@link #allowed()}
     */
    T parse(String text);

    /**
     * Writes a value so that {@link #parse} reads it again.
     *
     * @param value a value of this type
     * @return its text
     */
    String format(T value);

    /**
     * {@return what may be written, in words that complete "allowed: ", for instance {@code "a whole number from 1 to
     * 64"}}
     */
    String allowed();
}
