/**
 * Checksums of payloads ({@code MILLRACE_CHECK}). The sending end computes the checksum of a payload when it takes the
 * frame, and again when the network has read the payload. The frame's header contains the checksum. The receiving end
 * computes the checksum of the payload that has arrived.
 */
@NullMarked
package org.millrace.net.check;

import org.jspecify.annotations.NullMarked;
