/**
 * Frames whose payloads lie in a device's memory, over any network: what a network does not take from there itself is
 * staged in pinned memory of the host.
 */
@NullMarked
package org.millrace.net.device;

import org.jspecify.annotations.NullMarked;
