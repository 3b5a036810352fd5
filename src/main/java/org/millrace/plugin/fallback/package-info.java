/**
 * NCCL's own proxy stays in charge, and its messages are carried: isend, irecv and test over frames, with no thread of
 * ours.
 */
@NullMarked
package org.millrace.plugin.fallback;

import org.jspecify.annotations.NullMarked;
