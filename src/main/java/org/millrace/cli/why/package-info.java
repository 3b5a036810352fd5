/** {@code millrace why}: what the ranks of a job wait for, from what they have written down. */
@NullMarked
package org.millrace.cli.why;

import org.jspecify.annotations.NullMarked;
