/**
 * Base of all commands: the options that they share ({@link org.millrace.cli.base.MillraceCommand}), their superclass
 * ({@link org.millrace.cli.base.Subcommand}), and the formats of their results: tables, JSON, units, and the texts of
 * failures.
 */
@NullMarked
package org.millrace.cli.base;

import org.jspecify.annotations.NullMarked;
