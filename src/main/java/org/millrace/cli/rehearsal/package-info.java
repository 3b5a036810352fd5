/**
 * {@code millrace record}, {@code replay} and {@code simulate}. They read the recordings of {@code
 * org.millrace.rehearsal}.
 */
@NullMarked
package org.millrace.cli.rehearsal;

import org.jspecify.annotations.NullMarked;
