/**
 * Data path on which NCCL's own proxy moves the data: the proxy posts each message, and then tests the message until it
 * is complete. {@link org.millrace.plugin.fallback.FallbackPath} creates the connections. A receiver with several
 * buffers uses tags.
 */
@NullMarked
package org.millrace.plugin.fallback;

import org.jspecify.annotations.NullMarked;
