/**
 * Data path on which NCCL's own proxy moves the data: it posts each message, and calls until the message is complete.
 * {@link org.millrace.plugin.fallback.FallbackPath} creates the connections. A receiver with several buffers uses tags.
 */
@NullMarked
package org.millrace.plugin.fallback;

import org.jspecify.annotations.NullMarked;
