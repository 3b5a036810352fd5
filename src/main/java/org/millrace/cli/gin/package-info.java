/** {@code millrace gin} measures GIN with puts that the emulated device posts. */
@NullMarked
package org.millrace.cli.gin;

import org.jspecify.annotations.NullMarked;
