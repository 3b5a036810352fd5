/**
 * The settings: the table of what can be set, to what, and the reader that says what it is set to, and where.
 *
 * <p>
 * A {@link org.millrace.config.Configuration} is read once, where a program or the plugin begins, is immutable, and
 * refuses what it does not understand. Each part makes its options of it and hands them down. Uses no other package.
 */
@NullMarked
package org.millrace.config;

import org.jspecify.annotations.NullMarked;
