/** {@code millrace gin} measures GIN: puts by the emulated device. */
@NullMarked
package org.millrace.cli.gin;

import org.jspecify.annotations.NullMarked;
