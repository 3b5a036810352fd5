/**
 * Path on which NCCL's own proxy moves the data: each call of NCCL's proxy sends or receives a message.
 * {@link org.millrace.plugin.fallback.FallbackPath} creates the connections. A receiver with several buffers uses tags.
 */
@NullMarked
package org.millrace.plugin.fallback;

import org.jspecify.annotations.NullMarked;
