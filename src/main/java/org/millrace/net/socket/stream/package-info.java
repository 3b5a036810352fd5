/**
 * What connections over TCP have in common: options, the streams and their end, the header of a frame, bytes that were
 * read ahead, and registered memory. It knows nothing of how frames are divided.
 */
@NullMarked
package org.millrace.net.socket.stream;

import org.jspecify.annotations.NullMarked;
