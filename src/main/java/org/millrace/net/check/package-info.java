/**
 * Checksums of payloads ({@code MILLRACE_CHECK}). The sending end computes the sum of a payload when it takes the
 * frame, and again when the network has read the payload. The sum travels in the frame's header. The receiving end
 * computes the sum of the payload that has arrived.
 */
@NullMarked
package org.millrace.net.check;

import org.jspecify.annotations.NullMarked;
