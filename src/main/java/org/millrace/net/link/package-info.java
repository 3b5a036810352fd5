/**
 * Emulated links and planted faults in front of any network. A link has a rate, a delay with jitter, losses, and
 * periods without transmission. Programs on one host then run as on distant hosts. A setting plants faults. They test
 * the layers above the network, in Millrace's builds and in a user's cluster. The package uses only the contracts of
 * {@link org.millrace.net}.
 */
@NullMarked
package org.millrace.net.link;

import org.jspecify.annotations.NullMarked;
