/**
 * Emulated links and planted faults in front of any network. A link has a rate, a delay with jitter, losses, and
 * periods without transmission. With such a link, programs on one host run as if they were on distant hosts. Planted
 * faults test the layers above the network, in Millrace's builds and in a user's cluster. A setting ({@code
 * MILLRACE_FAULT}) contains the faults. The package uses only the contracts of {@link org.millrace.net}.
 */
@NullMarked
package org.millrace.net.link;

import org.jspecify.annotations.NullMarked;
