/**
 * The memory of another process of this host: whether this process may read it, whether that pays, and reading it. It
 * knows nothing of rings and frames.
 */
@NullMarked
package org.millrace.net.shm.peer;

import org.jspecify.annotations.NullMarked;
