/**
 * Whether the network between this host and others still carries anything: keep-alive probes on every TCP stream
 * between hosts, and a look at what the kernel has received on each.
 */
@NullMarked
package org.millrace.net.liveness;

import org.jspecify.annotations.NullMarked;
