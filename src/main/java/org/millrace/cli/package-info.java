/**
 * The command {@code millrace}. {@link org.millrace.cli.Main} parses a command line and runs one of the commands. Each
 * group of commands has a package. This package contains the commands about the command line itself: {@code help},
 * {@code man}, {@code completion}, and {@code plugin}, which installs the plugin and this command.
 */
@NullMarked
package org.millrace.cli;

import org.jspecify.annotations.NullMarked;
