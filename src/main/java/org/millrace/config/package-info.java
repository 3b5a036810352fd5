/**
 * The settings: the table of all settings and their allowed values, and the reader that returns each value and its
 * origin.
 *
 * <p>
 * A {@link org.millrace.config.Configuration} is read once, when a program or the plugin starts. It is immutable, and
 * refuses values that it does not understand. Each part of Millrace derives its options from the configuration and
 * passes them to lower layers. The package uses no other package of Millrace.
 */
@NullMarked
package org.millrace.config;

import org.jspecify.annotations.NullMarked;
