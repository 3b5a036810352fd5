/** Exceptions that repeat a failure for other threads and later calls. */
@NullMarked
package org.millrace.failure;

import org.jspecify.annotations.NullMarked;
