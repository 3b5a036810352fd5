/**
 * The commands that look at running, hanging and dead processes from outside: {@code ps}, {@code top}, {@code dump},
 * {@code metrics}, {@code trace}, {@code why}. They read what {@code org.millrace.trace} wrote, and disturb nobody.
 */
@NullMarked
package org.millrace.cli.inspect;

import org.jspecify.annotations.NullMarked;
