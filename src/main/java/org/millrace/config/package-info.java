/**
 * The settings: the table of all settings and their allowed values, and the reader that returns each value and its
 * origin.
 *
 * <p>
 * A {@link org.millrace.config.Configuration} is read once, when a program or the plugin starts. It is immutable, and
 * refuses values that it does not understand. Each part derives its options from it and passes them down. The package
 * uses no other package of Millrace.
 */
@NullMarked
package org.millrace.config;

import org.jspecify.annotations.NullMarked;
