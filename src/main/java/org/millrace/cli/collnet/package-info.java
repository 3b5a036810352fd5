/** {@code millrace collnet}: a process that reduces for ranks. */
@NullMarked
package org.millrace.cli.collnet;

import org.jspecify.annotations.NullMarked;
