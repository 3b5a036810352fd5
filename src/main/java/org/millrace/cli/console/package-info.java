/**
 * What every command of the command line uses: options that are read alike, standard output, JSON, the words of a
 * failure, and the JVM that starts another one like it. It knows no command.
 */
@NullMarked
package org.millrace.cli.console;

import org.jspecify.annotations.NullMarked;
